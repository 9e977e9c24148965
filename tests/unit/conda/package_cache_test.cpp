#include "../http_server.h"
#include "../users.h"
#include "conda/cache_directory.h"
#include "conda/package_cache.h"
#include "core/filesystem.h"
#include "util/digest.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <regex>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

using test::HttpServer;
using test::TemporaryDirectory;

std::string noise(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::string text(size, '\0');
    for (char& c : text)
        c = static_cast<char>(random());
    return text;
}

std::string md5(const std::string& data) {
    Md5 digest;
    digest.update(data.data(), data.size());
    return digest.finish();
}

bool is_writable_by_others(const fs::path& path) {
    const auto permissions = fs::status(path).permissions();
    return (permissions & (fs::perms::group_write | fs::perms::others_write)) != fs::perms::none;
}

class FetchPackages : public testing::Test {
protected:
    FetchPackages() : server(directory / "served"), config(Config()) {
        options.cache = directory / "cache";
        config.http.first_pause = std::chrono::milliseconds(1);
    }
    /// Adds a package to the channel and returns its record.
    PackageRecord package(const std::string& name, std::size_t size = 100'000,
                          const std::string& channel = "channel") {
        const auto data = noise(size, static_cast<unsigned>(name.size() + contents.size()));
        PackageRecord record;
        record.name = name;
        record.file_name = name + "-1.0-0.conda";
        record.subdir = "noarch";
        record.channel = server.url(channel);
        record.url = record.channel + "/noarch/" + record.file_name;
        record.sha256 = sha256(data);
        record.md5 = md5(data);
        record.size = size;
        directory.write("served/channel/noarch/" + record.file_name, data);
        contents[record.file_name] = data;
        return record;
    }
    [[nodiscard]] Result<std::vector<OpenFile>> fetch(const std::vector<PackageRecord>& records) const {
        return fetch_packages(records, channels, config, options);
    }
    [[nodiscard]] std::string message(const std::vector<PackageRecord>& records) const {
        const auto result = fetch(records);
        if (result) return "no error";
        return std::regex_replace(to_string(result.error()), std::regex(server.port()), "PORT");
    }
    void expect_good(const std::vector<PackageRecord>& records) const {
        const auto result = fetch(records);
        ASSERT_TRUE(result) << to_string(result.error());
        ASSERT_EQ(result->size(), records.size());
        for (std::size_t i = 0; i < records.size(); ++i)
            EXPECT_TRUE(read_file(path_of(*(*result)[i].file)).value() == contents.at(records[i].file_name))
                << records[i].url;
    }
    /// Whether a part of an unfinished download has arrived.
    [[nodiscard]] bool has_part_of(const std::string& name) const {
        return std::ranges::any_of(
            fs::directory_iterator(options.cache / "packages"), [&](const auto& entry) {
                return entry.path().filename().string().contains(name) && entry.file_size() > 0;
            });
    }
    [[nodiscard]] std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(options.cache / "packages"), fs::directory_iterator()));
    }

    TemporaryDirectory directory;
    HttpServer server;
    Config config;
    std::vector<Channel> channels;
    PackageOptions options;
    std::map<std::string, std::string> contents;
};

} // namespace

TEST_F(FetchPackages, OnceEach) {
    std::vector<PackageRecord> records;
    for (int i = 0; i < 30; ++i)
        records.push_back(package("p" + std::to_string(i), static_cast<std::size_t>(1000 * i + 1)));
    records.push_back(records[3]);
    records[5].sha256.clear();
    expect_good(records);
    EXPECT_EQ(server.seen().size(), 30U);
    EXPECT_EQ(entries(), 30U);
    expect_good(records);
    EXPECT_EQ(server.seen().size(), 30U);
    options.offline = true;
    expect_good(records);
}

TEST_F(FetchPackages, WhatIsDamagedIsReplaced) {
    const auto record = package("p");
    const auto path = fetch({record}).value().front().path;
    const auto cases = {contents[record.file_name].substr(1), contents[record.file_name] + "x",
                        noise(100'000, 99), std::string()};
    for (const auto& bad : cases) {
        std::ofstream(path, std::ios::trunc | std::ios::binary) << bad;
        expect_good({record});
    }
    EXPECT_EQ(server.seen().size(), 1 + cases.size());
    fs::remove(path);
    fs::create_symlink("/etc/passwd", path);
    expect_good({record});
    EXPECT_FALSE(fs::is_symlink(path));
    options.offline = true;
    std::ofstream(path, std::ios::app) << "x";
    EXPECT_EQ(message({record, package("q")}),
              "http://127.0.0.1:PORT/channel/noarch/p-1.0-0.conda: the cache does not have this package and "
              "1 more: --offline forbids using the network\nRun once without --offline, with the same cache, "
              "on a machine that can reach the channels.");
}

TEST_F(FetchPackages, WrongChecksum) {
    auto record = package("p", 1000, "wrong/1/channel");
    expect_good({record});
    record = package("q", 1000, "wrong/9/channel");
    auto bad = contents[record.file_name];
    bad.back() = '#';
    EXPECT_EQ(message({record}),
              "http://127.0.0.1:PORT/wrong/9/channel/noarch/q-1.0-0.conda: cannot use the download: its "
              "checksum is wrong: expected sha256 " +
                  record.sha256 + ", got sha256 " + sha256(bad) +
                  "\nThe file was downloaded twice. Either the server's files do not match their list (try "
                  "again later), or something on the way changes them.");
    EXPECT_EQ(server.seen("wrong/9/channel/noarch/q-1.0-0.conda").size(), 2U);
    // The mirror has the right file.
    channels = {{.name = "c",
                 .url = server.url("wrong/9/channel"),
                 .mirrors = {server.url("wrong/9/channel"), server.url("channel")}}};
    expect_good({record});
    EXPECT_EQ(server.seen("channel/noarch/q-1.0-0.conda").size(), 1U);
}

TEST_F(FetchPackages, BrokenDownloadsGoOnInTheNextRun) {
    const auto record = package("p", 1'000'000, "cut/9/channel");
    config.http.retries = 0;
    // Each attempt adds 100 kB, and progress resets the number of retries, so one run completes the download.
    expect_good({record});
    EXPECT_EQ(server.seen().back().range, "bytes=900000-");

    const auto killed = package("q", 1'000'000, "trickle/channel");
    const pid_t child = fork();
    if (child == 0) {
        [[maybe_unused]] const auto ignored = fetch({killed});
        _exit(0);
    }
    EXPECT_TRUE(test::happens([&] { return has_part_of("q-1.0-0"); }));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(entries(), 2U); // one of them is the unfinished file
    expect_good({killed});
    EXPECT_NE(server.seen().back().range, "");
    EXPECT_EQ(entries(), 2U);
}

TEST_F(FetchPackages, BuildsAtOnceDownloadOnce) {
    std::vector<PackageRecord> records;
    for (int i = 0; i < 6; ++i)
        records.push_back(package("p" + std::to_string(i), 200'000, "trickle/channel"));
    {
        std::vector<std::jthread> builds;
        for (int i = 0; i < 5; ++i)
            builds.emplace_back([&, i] {
                // Each build has a different order.
                auto own = records;
                std::ranges::rotate(own, own.begin() + i);
                expect_good(own);
            });
    }
    EXPECT_EQ(server.seen().size(), 6U);
    EXPECT_EQ(entries(), 6U);
}

TEST_F(FetchPackages, KilledAnywhere) {
    std::vector<PackageRecord> records;
    for (int i = 0; i < 4; ++i)
        records.push_back(package("p" + std::to_string(i), 200'000, "trickle/channel"));
    int downloading = 0;
    for (int moment = -1; moment < 10; ++moment) // a download takes 300 ms
        if (test::killed_at_work(server, moment * std::chrono::milliseconds(41),
                                 [&] { [[maybe_unused]] const auto ignored = fetch(records); }) &&
            moment >= 0)
            ++downloading;
    EXPECT_GT(downloading, 0);
    expect_good(records);
    EXPECT_EQ(entries(), 4U);
}

TEST_F(FetchPackages, RecordsThatCannotBeTrusted) {
    auto record = package("p");
    record.sha256.clear();
    record.md5.clear();
    EXPECT_EQ(message({record}),
              "http://127.0.0.1:PORT/channel/noarch/p-1.0-0.conda: cannot fetch this package: its channel "
              "has no checksum for it\nWithout a checksum, the download cannot be verified.");
    options.allow_unverified = true;
    testing::internal::CaptureStderr();
    expect_good({record});
    EXPECT_TRUE(testing::internal::GetCapturedStderr().contains("Note: 1 of 1 packages have no checksum"));
    record = package("q");
    record.file_name = "../q.conda";
    EXPECT_TRUE(message({record}).contains("its file name is invalid"));
    record = package("q");
    record.sha256 = "../../../../../../../../etc/passwd00000000000000000000000000000000";
    EXPECT_TRUE(message({record}).contains("its checksum is invalid"));
    EXPECT_EQ(server.seen().size(), 1U);
}

TEST_F(FetchPackages, CondasOwnCachesAreReadAndNeverWritten) {
    const auto flat = package("flat");
    const auto nested = package("nested");
    const auto damaged = package("damaged");
    directory.write("pkgs/flat-1.0-0.conda", contents[flat.file_name]);
    directory.write("pkgs/http/127.0.0.1:" + server.port() + "/channel/noarch/nested-1.0-0.conda",
                    contents[nested.file_name]);
    const auto bad = directory.write("pkgs/damaged-1.0-0.conda", "x");
    config.pkgs_dirs = {directory / "pkgs", "/nowhere"};
    expect_good({flat, nested, damaged});
    EXPECT_EQ(server.seen().size(), 1U);
    EXPECT_EQ(read_file(bad).value(), "x");
    EXPECT_EQ(entries(), 1U);
    EXPECT_EQ(fetch({flat}).value().front().path, directory / "pkgs/flat-1.0-0.conda");
}

TEST_F(FetchPackages, LocalChannelsAreReadInPlace) {
    auto record = package("p");
    record.channel = "file://" + (directory / "served/channel").string();
    record.url = record.channel + "/noarch/" + record.file_name;
    EXPECT_EQ(fetch({record}).value().front().path, directory / "served/channel/noarch/p-1.0-0.conda");
    EXPECT_EQ(entries(), 0U);
    directory.write("served/channel/noarch/p-1.0-0.conda", noise(100'000, 50));
    EXPECT_TRUE(message({record}).contains("its checksum is wrong"));
    fs::remove(directory / "served/channel/noarch/p-1.0-0.conda");
    EXPECT_EQ(message({record}), record.url + ": cannot download: the file does not exist or cannot be read");
}

TEST_F(FetchPackages, WhatOthersCanChangeIsCopied) {
    const auto shared = package("shared");
    const auto path = fetch({shared}).value().front().path;
    fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
    options.offline = true;
    expect_good({shared});
    EXPECT_FALSE(is_writable_by_others(path)) << "its place has a file of our own now";

    auto local = package("local");
    local.channel = "file://" + (directory / "served/channel").string();
    local.url = local.channel + "/noarch/" + local.file_name;
    fs::permissions(directory / "served/channel/noarch/local-1.0-0.conda", fs::perms::others_write,
                    fs::perm_options::add);
    EXPECT_TRUE(fetch({local}).value().front().path.native().starts_with(options.cache.native()));
    expect_good({local});

    if (geteuid() != 0) return;
    const auto foreign = package("foreign");
    options.offline = false;
    const auto theirs = fetch({foreign}).value().front().path;
    ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
    const auto requests = server.seen().size();
    const auto ours = fetch({foreign}).value().front().path;
    EXPECT_EQ(ours, theirs.parent_path() / ("0-" + theirs.filename().string()));
    EXPECT_TRUE(fs::exists(theirs));
    expect_good({foreign});
    EXPECT_EQ(server.seen().size(), requests) << "another's file spares the network";
    auto unverified = foreign;
    unverified.sha256.clear();
    unverified.md5.clear();
    options.allow_unverified = true;
    const auto first = fetch({unverified}).value().front().path;
    ASSERT_EQ(chown(first.c_str(), 65534, 65534), 0);
    EXPECT_NE(fetch({unverified}).value().front().path, first) << "nothing says that it is what it should be";
}

TEST_F(FetchPackages, UnfinishedFilesOfOthersAreNotContinued) {
    const auto record = package("p");
    config.http.retries = 0;
    fs::create_directories(options.cache / "packages");
    char host[64] = {};
    ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
    const auto part = options.cache / "packages" /
                      ("." + record.sha256.substr(0, 16) + "-" + record.file_name + "." + host + "." +
                       std::to_string(geteuid()) + ".part");
    std::ofstream(part) << contents[record.file_name].substr(0, 50'000);
    fs::permissions(part, fs::perms::others_write, fs::perm_options::add);
    const int kept = open(part.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(kept, 0);
    const auto path = fetch({record}).value().front().path;
    struct stat mine {};
    struct stat theirs {};
    ASSERT_EQ(stat(path.c_str(), &mine), 0);
    ASSERT_EQ(fstat(kept, &theirs), 0);
    EXPECT_NE(mine.st_ino, theirs.st_ino);
    close(kept);
    expect_good({record});
}

TEST_F(FetchPackages, TokensAreSentAndNotKept) {
    auto record = package("p");
    config.tokens = {{"127.0.0.1:" + server.port(), "to-ken"}};
    expect_good({record});
    EXPECT_EQ(server.seen().at(0).path, "/t/to-ken/channel/noarch/p-1.0-0.conda");
    config.tokens.begin()->second = "revoked";
    const auto text = message({package("q")});
    EXPECT_TRUE(text.starts_with(
        "http://127.0.0.1:PORT/channel/noarch/q-1.0-0.conda: cannot download: the server refuses "
        "access (403 Forbidden)"))
        << text;
    EXPECT_FALSE(text.contains("revoked"));
}

TEST_F(FetchPackages, TheFirstFailureEndsAll) {
    std::vector<PackageRecord> records;
    for (int i = 0; i < 60; ++i)
        records.push_back(package("p" + std::to_string(i), 1000, "slow/0.1/channel"));
    records[0].size = 2'000; // it is requested first
    EXPECT_TRUE(message(records).contains(
        "p0-1.0-0.conda: cannot use the download: it has 1000 bytes, expected 2000"));
    EXPECT_LT(server.seen().size(), 60U);
}

// Somebody with write access replaces the file after the archive was verified.
TEST_F(FetchPackages, WhatWasVerifiedIsWhatIsRead) {
    const auto record = package("p");
    for (const bool again : {false, true}) {
        const auto archive = fetch({record}).value().front();
        const auto other = directory.write("other", "not what was verified");
        fs::rename(other, archive.path);
        EXPECT_TRUE(read_file(path_of(*archive.file)).value() == contents.at(record.file_name)) << again;
    }
}

TEST_F(FetchPackages, SeveralUsersShareACache) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    fs::permissions(directory.path(), fs::perms(0755));
    const auto here = package("here");
    const auto there = package("there");
    options.cache = directory / "shared";
    fs::create_directory(options.cache);
    fs::permissions(options.cache, fs::perms(01777));
    const auto fetched = [&](const std::vector<PackageRecord>& records) -> std::string {
        const auto result = fetch(records);
        if (!result) return to_string(result.error());
        std::string found;
        for (std::size_t i = 0; i < records.size(); ++i)
            found += read_file(path_of(*(*result)[i].file)).value() == contents.at(records[i].file_name)
                         ? "good "
                         : "bad ";
        return found;
    };
    constexpr uid_t one = 65533;
    constexpr uid_t two = 65534;
    EXPECT_EQ(test::as_user(one, 022, [&] { return fetched({here}); }), "good ");
    const auto packages = options.cache / "packages";
    EXPECT_EQ(static_cast<unsigned>(fs::status(packages).permissions()), 01777U)
        << "as the cache, and sticky";
    const auto of_one = fs::directory_iterator(packages)->path();
    EXPECT_EQ(static_cast<unsigned>(fs::status(of_one).permissions()), 0644U);

    for (const mode_t umask : {022U, 077U, 0U})
        EXPECT_EQ(test::as_user(two, umask, [&] { return fetched({here, there}); }), "good good ") << umask;
    EXPECT_EQ(test::as_user(two, 022,
                            [&] {
                                const auto replaced = rename((packages / "x").c_str(), of_one.c_str());
                                return std::to_string(replaced + unlink(of_one.c_str()));
                            }),
              "-2")
        << "another's archive";
    // Only the owner can remove a file.
    EXPECT_EQ(test::as_user(two, 022,
                            [&] {
                                const auto removed =
                                    clean_cache(places_in(options.cache, {}), std::chrono::hours(0));
                                return removed ? std::to_string(removed->packages.files)
                                               : to_string(removed.error());
                            }),
              "2");
    EXPECT_TRUE(fs::exists(of_one));
    // A cache in which only one user writes keeps the permissions of the umask.
    options.cache = directory / "private";
    fs::create_directory(options.cache);
    ASSERT_EQ(chown(options.cache.c_str(), one, one), 0);
    EXPECT_EQ(test::as_user(one, 022, [&] { return fetched({here}); }), "good ");
    EXPECT_EQ(static_cast<unsigned>(fs::status(options.cache / "packages").permissions()), 0755U);
    EXPECT_TRUE(test::as_user(two, 022, [&] { return fetched({there}); }).contains("Permission denied"));
}

TEST_F(FetchPackages, InfoAndClean) {
    const auto record = package("p", 5000);
    const auto other = package("q", 3000);
    const auto path = fetch({record, other}).value().front().path;
    fs::create_directories(repodata_in(options.cache));
    ASSERT_TRUE(write_file(repodata_in(options.cache) / (std::string(16, 'a') + ".state.json"), "1234"));
    directory.write("cache/else", "not ours to remove");
    auto info = cache_info(places_in(options.cache, {})).value();
    EXPECT_EQ(info.packages.files, 2U);
    EXPECT_EQ(info.packages.bytes, 8000U);
    EXPECT_EQ(info.repodata.bytes, 4U);
    EXPECT_EQ(archives_in(options.cache).size(), 2U);
    const timespec then{.tv_sec = std::time(nullptr) - 40 * 86400, .tv_nsec = 0};
    const timespec times[2] = {then, then};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
    const auto month = std::chrono::hours(30 * 24);
    // Using a package makes it recent again.
    expect_good({record});
    EXPECT_EQ(clean_cache(places_in(options.cache, {}), month).value().packages.files, 0U);
    utimensat(AT_FDCWD, path.c_str(), times, 0);
    const auto removed = clean_cache(places_in(options.cache, {}), month).value();
    EXPECT_EQ(removed.packages.files, 1U);
    EXPECT_EQ(removed.packages.bytes, 5000U);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(clean_cache(places_in(options.cache, {}), std::chrono::hours(0)).value().packages.files, 1U);
    EXPECT_TRUE(archives_in(options.cache).empty());
    info = cache_info(places_in(options.cache, {})).value();
    EXPECT_EQ(info.packages.files + info.repodata.files, 0U);
    EXPECT_TRUE(fs::exists(options.cache / "else"));
    EXPECT_TRUE(cache_info(places_in("/nowhere", {})));
}

TEST_F(FetchPackages, CleanKeepsForeignFiles) {
    auto plain = package("p", 100);
    auto by_md5 = package("q", 100);
    by_md5.sha256.clear();
    auto unverified = package("r", 100);
    unverified.sha256.clear();
    unverified.md5.clear();
    options.allow_unverified = true;
    ASSERT_TRUE(fetch({plain, by_md5, unverified}));
    const std::string id(16, 'a');
    const std::string identity(64, 'b');
    directory.write("cache/packages/1000-" + id + "-p-1.0-0.conda", "another's place");
    directory.write("cache/packages/." + id + "-p-1.0-0.conda.node.1000.part", "partial");
    directory.write("cache/packages/." + id + "-p-1.0-0.conda.node.1000.part.77", "partial");
    const std::string lists = "cache/repodata/" + std::to_string(geteuid()) + "/";
    for (const auto& name :
         {id + ".state.json", id + ".lock", id + "-" + id + ".json", identity + ".containerize-index-2",
          "." + id + ".state.json.12-0", std::string(".tmp-aB3xYz")})
        directory.write(lists + name, "ours");
    const std::vector<std::string> foreign = {"cache/packages/numpy-2.0.0-py312_0.conda",
                                              "cache/packages/numpy-2.0.0-py312_0.tar.bz2",
                                              "cache/packages/thesis.tex",
                                              "cache/packages/urls.txt",
                                              "cache/packages/.hidden.part",
                                              "cache/packages/" + id + "-notes.txt",
                                              lists + "results.json",
                                              lists + "my.lock"};
    for (const auto& file : foreign)
        directory.write(file, "foreign");

    const auto use = cache_info(places_in(options.cache, {})).value();
    EXPECT_EQ(use.packages.files, 6U);
    EXPECT_EQ(use.repodata.files, 6U);
    const auto removed = clean_cache(places_in(options.cache, {}), std::chrono::hours(0)).value();
    EXPECT_EQ(removed.packages.files, 6U);
    EXPECT_EQ(removed.repodata.files, 6U);
    EXPECT_EQ(removed.packages.foreign, 6U);
    EXPECT_EQ(removed.repodata.foreign, 2U);
    for (const auto& file : foreign)
        EXPECT_TRUE(fs::exists(directory / file)) << file;
}

TEST(CacheDirectory, Places) {
    const TemporaryDirectory directory;
    const auto at = [&](const char* name) { return (directory / name).string(); };
    Environment environment = {{"HOME", at("home")}, {"TMPDIR", at("tmp")}};
    fs::create_directories(at("home"));
    fs::create_directories(at("tmp"));
    EXPECT_EQ(cache_directory(environment).value(), at("home/.cache/containerize"));
    environment["XDG_CACHE_HOME"] = at("xdg");
    EXPECT_EQ(cache_directory(environment).value(), at("xdg/containerize"));
    environment["CONTAINERIZE_CACHE"] = at("own");
    EXPECT_EQ(cache_directory(environment).value(), at("own"));
    environment["CONTAINERIZE_CACHE"] = "own";
    EXPECT_EQ(to_string(cache_directory(environment).error()),
              "CONTAINERIZE_CACHE: the cache directory is not an absolute path: it is 'own'");
    directory.write("file", "");
    environment["CONTAINERIZE_CACHE"] = at("file/x");
    EXPECT_EQ(to_string(cache_directory(environment).error()),
              at("file/x") + ": the cache directory cannot be used: Not a directory\nThe path is from "
                             "CONTAINERIZE_CACHE.");

    // The home cannot be written to.
    environment = {{"HOME", at("file")}, {"TMPDIR", at("tmp")}};
    const auto own = directory / "tmp" / ("containerize-cache-" + std::to_string(geteuid()));
    EXPECT_EQ(cache_directory(environment).value(), own);
    EXPECT_EQ(fs::status(own).permissions(), fs::perms::owner_all);
    // A directory that others can enter is not used.
    fs::permissions(own, fs::perms::others_read, fs::perm_options::add);
    EXPECT_NE(cache_directory(environment).value(), own);
    fs::remove(own);
    fs::create_directory_symlink(at("home"), own);
    EXPECT_NE(cache_directory(environment).value(), own);
}

/// The directories of a cache that several users share, which belong to `owner`, and the part of one user.
class SharedCache : public testing::Test {
protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
        fs::permissions(place.path(), fs::perms(0755));
        give(cache, 0, 01777);
    }

    static void give(const fs::path& directory, uid_t owner, mode_t mode) {
        fs::create_directories(directory);
        ASSERT_EQ(chown(directory.c_str(), owner, owner), 0);
        ASSERT_EQ(chmod(directory.c_str(), mode), 0);
    }

    /// "shared" or "own" for repodata and images.
    [[nodiscard]] std::string places() const {
        return test::as_user(one, 022, [&] {
            const auto found = places_in(cache, {{"XDG_CACHE_HOME", (place / "mine").string()}});
            const auto of = [&](const fs::path& part) {
                return part == cache ? "shared" : part == place / "mine/containerize" ? "own" : "?";
            };
            return std::string(of(found.repodata)) + " " + of(found.images);
        });
    }

    static constexpr uid_t one = 65533, another = 65534;
    const TemporaryDirectory place;
    const fs::path cache = place / "cache";
};

TEST_F(SharedCache, HoldsThePartsOfItsUsers) {
    EXPECT_EQ(places(), "shared shared");
    give(cache / "images", one, 01777);
    give(cache / "repodata", 0, 01777);
    EXPECT_EQ(places(), "shared shared");
    give(images_in(cache).parent_path() / std::to_string(one), one, 0700);
    EXPECT_EQ(places(), "shared shared");
    give(cache, one, 0755);
    EXPECT_EQ(places(), "shared shared");
}

TEST_F(SharedCache, HoldsNoPartThatAnotherUserCanReplace) {
    give(cache / "images", another, 01777);
    EXPECT_EQ(places(), "shared own") << "the owner of a sticky directory can rename all entries";
    give(cache / "images", one, 0777);
    EXPECT_EQ(places(), "shared own") << "without the sticky bit, everybody can";
    give(cache / "images", one, 0755);
    give(cache / "images" / std::to_string(one), another, 0700);
    EXPECT_EQ(places(), "shared own");
    give(cache, another, 01777);
    EXPECT_EQ(places(), "own own");
    constexpr gid_t project = 12345;
    const auto give_to_group = [&](uid_t owner, mode_t mode) {
        give(cache, owner, mode);
        ASSERT_EQ(chown(cache.c_str(), owner, project), 0);
    };
    fs::remove_all(cache / "images");
    give_to_group(one, 02770);
    EXPECT_EQ(places(), "own own") << "all of the group can rename entries";
    give_to_group(one, 03770);
    EXPECT_EQ(places(), "shared shared");
    give_to_group(0, 02775);
    EXPECT_EQ(places(), "own own") << "also if root has given it to the group";
    give_to_group(0, 03775);
    EXPECT_EQ(places(), "shared shared");
}

TEST_F(SharedCache, MayBeInADirectoryOfAnother) {
    // As in a project's directory: whoever chose the place trusts its owner.
    ASSERT_EQ(chown(place.path().c_str(), another, another), 0);
    give(cache, one, 0755);
    EXPECT_EQ(places(), "shared shared");
}

TEST_F(SharedCache, OfASiteIsUsedIfItsOwnersAreTrusted) {
    const auto images = [&](uid_t owner) {
        return test::as_user(one, 022, [&] {
            const auto found = images_of_site({.directory = cache, .owner = owner});
            std::string names;
            for (const auto& directory : found.directories)
                names += directory.filename().string() + " ";
            return names + found.obstacle;
        });
    };
    give(cache, 0, 0755);
    EXPECT_EQ(images(0), "") << "it was not filled yet";
    give(cache / "images", 0, 0755);
    give(cache / "images/0", 0, 0755);
    give(cache / "images/65534", another, 0755);
    EXPECT_EQ(images(0), "0 ");
    EXPECT_EQ(images(another), "0 65534 ");
    give(cache / "images", another, 0755);
    EXPECT_EQ(images(0), (cache / "images").string() + ": it belongs to another user");
    EXPECT_EQ(images(another), "0 65534 ");
    give(cache, 0, 01777);
    EXPECT_EQ(images(another), "0 65534 ");
    give(cache, 0, 0777);
    EXPECT_EQ(images(another), cache.string() + ": everybody can write to it");
    give(cache, 0, 0755);
    give(cache / "images", 0, 0755);
    give(cache / "images/0", 0, 0700);
    EXPECT_EQ(images(0), (cache / "images/65534").string() + ": it belongs to another user");
    fs::remove_all(cache / "images/65534");
    EXPECT_EQ(images(0), (cache / "images/0").string() + ": Permission denied");
}

TEST_F(SharedCache, OfASiteCanBeReadWhateverTheUmask) {
    give(cache, one, 0755);
    const auto made = [&](mode_t umask, mode_t umask_bits) {
        return test::as_user(one, umask, [&] {
            const auto done = make_images_for_all(cache, umask_bits);
            return done ? std::string() : to_string(done.error());
        });
    };
    EXPECT_EQ(made(077, 022), "");
    for (const auto& directory : {cache / "images", cache / "images" / std::to_string(one)})
        EXPECT_EQ(test::mode_of(directory), 0755U);
    fs::remove_all(cache / "images");
    EXPECT_EQ(made(077, 027), "");
    const auto directory = cache / "images" / std::to_string(one);
    EXPECT_EQ(test::mode_of(directory), 0750U);
    EXPECT_EQ(test::as_user(one, 077, [&] { return make_images(cache) ? "good" : "bad"; }), "good");
    EXPECT_EQ(test::mode_of(directory), 0750U) << "others still read it";
    ASSERT_EQ(chmod(directory.c_str(), 0770), 0);
    EXPECT_EQ(test::as_user(one, 077, [&] { return make_images(cache) ? "good" : "bad"; }), "bad");
}

} // namespace containerize::conda
