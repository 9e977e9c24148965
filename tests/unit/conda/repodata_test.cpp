#include "../good.h"
#include "../http_server.h"
#include "../users.h"
#include "conda/cache_directory.h"
#include "conda/repodata.h"
#include "conda/repodata_state.h"
#include "util/digest.h"
#include "util/file_lock.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <regex>
#include <thread>

#include <bzlib.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

namespace containerize::conda {

namespace {

using test::HttpServer;
using test::TemporaryDirectory;

std::string zstd(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

std::string bzip2(std::string text) {
    std::string packed(text.size() + 1000, '\0');
    auto size = static_cast<unsigned>(packed.size());
    BZ2_bzBuffToBuffCompress(packed.data(), &size, text.data(), static_cast<unsigned>(text.size()), 9, 0, 0);
    packed.resize(size);
    return packed;
}

void make_older(const fs::path& file, std::time_t seconds) {
    const timespec then{.tv_sec = std::time(nullptr) - seconds, .tv_nsec = 0};
    const timespec times[2] = {then, then};
    utimensat(AT_FDCWD, file.c_str(), times, 0);
}

std::string content_of(const Repodata& one) {
    return read_file(path_of(*one.json.file)).value();
}

class FetchRepodata : public testing::Test {
protected:
    FetchRepodata() : server(directory / "served"), config(Config()) {
        options.cache = directory / "cache";
        config.http.first_pause = std::chrono::milliseconds(1);
        config.use_shards = false;
        for (int i = 0; i < 2000; ++i)
            list += "\"package-" + std::to_string(i) + "\": {},\n";
        list = "{\"packages\": {" + list + "\"last\": {}}}";
    }
    fs::path serve(const std::string& name, const std::string& content) const {
        return directory.write("served/" + name, content);
    }
    [[nodiscard]] Channel channel(const std::string& path) const {
        return {.name = path, .url = server.url(path), .mirrors = {server.url(path)}};
    }
    [[nodiscard]] Result<std::vector<Repodata>> fetch(const std::string& path) const {
        return fetch_repodata({channel(path)}, {"linux-64", "noarch"}, config, options);
    }
    /// The content of each subdir, "-" for one that does not exist; or the error.
    [[nodiscard]] std::vector<std::string> contents(const std::string& path) const {
        const auto result = fetch(path);
        if (!result)
            return {std::regex_replace(to_string(result.error()), std::regex(server.port()), "PORT")};
        std::vector<std::string> found;
        for (const auto& one : *result)
            found.push_back(one.json ? content_of(one) : "-");
        return found;
    }
    std::vector<std::string> asked() {
        std::vector<std::string> paths;
        const auto seen = server.seen();
        for (std::size_t at = asked_before; at < seen.size(); ++at)
            paths.push_back(seen[at].path);
        asked_before = seen.size();
        std::ranges::sort(paths);
        return paths;
    }

    TemporaryDirectory directory;
    HttpServer server;
    Config config;
    RepodataOptions options;
    std::string list;
    std::size_t asked_before = 0;
};

using Texts = std::vector<std::string>;

} // namespace

TEST_F(FetchRepodata, SmallestFormFirst) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/linux-64/repodata.json", "{\"never\": \"asked for\"}");
    serve("a/noarch/repodata.json.bz2", bzip2(list));
    EXPECT_EQ(contents("a"), (Texts{list, list}));
    EXPECT_EQ(asked(), (Texts{"/a/linux-64/repodata.json.zst", "/a/noarch/repodata.json.bz2",
                              "/a/noarch/repodata.json.zst"}));
    const auto result = test::good(fetch("a"));
    EXPECT_EQ(result[0].identity, sha256(zstd(list)));
    EXPECT_EQ(result[1].identity, sha256(bzip2(list)));
    EXPECT_EQ(result[0].cache, repodata_in(options.cache));
}

TEST_F(FetchRepodata, AskedAgainOnlyForChanges) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json", list);
    EXPECT_EQ(contents("a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 4U);
    // The missing formats are remembered; the existing file is requested with its ETag.
    const auto before = fetch("a");
    EXPECT_EQ(asked(), (Texts{"/a/linux-64/repodata.json.zst", "/a/noarch/repodata.json"}));
    EXPECT_EQ(server.seen().back().if_none_match.size(), 18U);
    EXPECT_EQ(contents("a"), (Texts{list, list}));

    asked();
    const auto other = "{\"packages\": {\"new\": 1}}";
    serve("a/linux-64/repodata.json.zst", zstd(other));
    EXPECT_EQ(contents("a"), (Texts{other, list}));
    // A file that another build may be reading stays. Later it is removed, with what the solver made from it.
    EXPECT_EQ(content_of((*before)[0]), list);
    const auto solv = repodata_in(options.cache) / ((*before)[0].identity + ".solv");
    ASSERT_TRUE(write_file(solv, "x"));
    make_older((*before)[0].json.path, 7200);
    serve("a/linux-64/repodata.json.zst", zstd(list + " "));
    EXPECT_EQ(contents("a"), (Texts{list + " ", list}));
    EXPECT_FALSE(fs::exists((*before)[0].json.path));
    EXPECT_FALSE(fs::exists(solv));
}

TEST_F(FetchRepodata, MaxAgeIsHonoured) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json.zst", zstd(list));
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(contents("aged/60/a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 2U);
    config.local_repodata_ttl = 0;
    EXPECT_EQ(contents("aged/60/a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 2U);
    config.local_repodata_ttl = 1000;
    EXPECT_EQ(contents("a"), (Texts{list, list}));
    EXPECT_EQ(contents("a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 2U);
}

TEST_F(FetchRepodata, AMissingSubdirIsFineAMissingChannelIsNot) {
    serve("a/linux-64/repodata.json", list);
    EXPECT_EQ(contents("a"), (Texts{list, "-"}));
    EXPECT_EQ(
        contents("none"),
        Texts{"http://127.0.0.1:PORT/none: this is not a channel: there is no repodata.json for linux-64 or "
              "noarch\nCheck the channel's name. A private channel needs a token or a login."});
    EXPECT_EQ(fetch("none").error().fault, Fault::input);
    // The list is found once it exists.
    serve("a/noarch/repodata.json", list);
    EXPECT_EQ(contents("a"), (Texts{list, list}));
}

TEST_F(FetchRepodata, Offline) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    options.offline = true;
    EXPECT_EQ(contents("a"), Texts{"http://127.0.0.1:PORT/a/linux-64: the cache does not have this package "
                                   "list: --offline forbids using the network\nRun once without --offline, "
                                   "with the same cache, on a machine that can reach the channel."});
    options.offline = false;
    EXPECT_EQ(contents("a"), (Texts{list, "-"}));
    asked();
    options.offline = true;
    EXPECT_EQ(contents("a"), (Texts{list, "-"}));
    options.offline = false;
    config.offline = true;
    EXPECT_EQ(contents("a"), (Texts{list, "-"}));
    EXPECT_TRUE(asked().empty());
}

TEST_F(FetchRepodata, ErrorsOfTheServer) {
    EXPECT_EQ(contents("status/403/a")[0].substr(0, 117),
              "http://127.0.0.1:PORT/status/403/a/linux-64/repodata.json: cannot download: the server "
              "refuses access (403 "
              "Forbidden)");
    serve("a/linux-64/repodata.json.zst", zstd(list));
    config.http.retries = 1;
    EXPECT_EQ(contents("flaky/503/1/a"), (Texts{list, "-"}));
    // An older copy is used only on request.
    const auto old = contents("a");
    serve("a/linux-64/repodata.json.zst", zstd(list).substr(0, 50));
    EXPECT_EQ(contents("a"),
              Texts{"http://127.0.0.1:PORT/a/linux-64/repodata.json.zst: cannot use this package list: it is "
                    "truncated\nThe server may be updating it. Try again later."});
    options.offline = true;
    EXPECT_EQ(contents("a"), old);
}

TEST_F(FetchRepodata, WhatIsNoPackageList) {
    serve("page/linux-64/repodata.json", "\n<!DOCTYPE html><title>Log in</title>");
    EXPECT_EQ(
        contents("page"),
        Texts{"http://127.0.0.1:PORT/page/linux-64/repodata.json: this is not a package list: it is a web "
              "page\nCheck the channel's URL. A proxy or a login page may answer instead of the server."});
    serve("text/linux-64/repodata.json.zst", zstd("hello"));
    EXPECT_TRUE(contents("text")[0].contains("it is not JSON"));
    serve("empty/linux-64/repodata.json", "");
    EXPECT_TRUE(contents("empty")[0].contains("it is empty"));
    serve("damaged/linux-64/repodata.json.zst", "{\"packages\": {}}");
    EXPECT_TRUE(contents("damaged")[0].contains("it is damaged: Unknown frame descriptor"));
    serve("damaged2/linux-64/repodata.json.bz2", "BZh9 no more");
    EXPECT_TRUE(contents("damaged2")[0].contains("it is damaged"));
    serve("cut/linux-64/repodata.json.bz2", bzip2(list).substr(0, 500));
    EXPECT_TRUE(contents("cut")[0].contains("http"));
    EXPECT_TRUE(
        std::ranges::none_of(fs::directory_iterator(repodata_in(options.cache)), [](const auto& entry) {
            return entry.path().filename().string().starts_with(".tmp-");
        }));
}

TEST_F(FetchRepodata, Bombs) {
    options.largest = 10'000;
    serve("a/linux-64/repodata.json.zst", zstd(list));
    EXPECT_EQ(contents("a"),
              Texts{"http://127.0.0.1:PORT/a/linux-64/repodata.json.zst: cannot use this package list: it "
                    "unpacks to more than 10.0 kB\nThe server may be updating it. Try again later."});
    serve("b/linux-64/repodata.json", list);
    EXPECT_TRUE(contents("b")[0].contains("it is larger than 10.0 kB"));
    options.largest = std::uint64_t{2} << 30U;
    serve("c/linux-64/repodata.json.zst", zstd("{" + std::string(300U << 20U, ' ')));
    EXPECT_TRUE(contents("c")[0].contains("it unpacks to more than 26"));
}

TEST_F(FetchRepodata, StreamsThatFollowEachOther) {
    const auto half = list.size() / 2;
    serve("a/linux-64/repodata.json.zst", zstd(list.substr(0, half)) + zstd(list.substr(half)));
    serve("a/noarch/repodata.json.bz2", bzip2(list.substr(0, half)) + bzip2(list.substr(half)));
    EXPECT_EQ(contents("a"), (Texts{list, list}));
}

TEST_F(FetchRepodata, ACacheThatWasTamperedWith) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json.zst", zstd(list));
    const auto first = test::good(fetch("aged/1000/a"));
    const auto json = first[0].json.path;
    const auto key = json.filename().string().substr(0, 16);
    const auto state = json.parent_path() / (key + ".state.json");
    const auto good = read_file(state).value();
    asked();
    // The content does not match.
    std::ofstream(json, std::ios::app) << " ";
    EXPECT_EQ(contents("aged/1000/a"), (Texts{list, list}));
    EXPECT_EQ(asked(), Texts{"/aged/1000/a/linux-64/repodata.json.zst"});
    EXPECT_EQ(server.seen().back().if_none_match, "");
    // The content is missing.
    fs::remove(json);
    EXPECT_EQ(contents("aged/1000/a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 1U);
    // A state that is invalid, or for another URL, or a link, is not used.
    for (const auto& text :
         {std::string("{"), std::string("[]"), std::string("{\"url\": 1}"),
          std::regex_replace(good, std::regex("linux-64"), "linux-65"),
          std::regex_replace(good, std::regex("\"etag\": \""), "\"etag\": \"x\\r\\nEvil: 1")}) {
        std::ofstream(state, std::ios::trunc) << text;
        EXPECT_EQ(contents("aged/1000/a"), (Texts{list, list}));
        EXPECT_EQ(asked().size(), 1U) << text;
    }
    fs::rename(state, directory / "elsewhere");
    fs::create_symlink(directory / "elsewhere", state);
    EXPECT_EQ(contents("aged/1000/a"), (Texts{list, list}));
    EXPECT_EQ(asked().size(), 1U);
    EXPECT_FALSE(fs::is_symlink(state));
}

TEST_F(FetchRepodata, AtOnce) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json.zst", zstd(list));
    std::vector<std::jthread> builds;
    std::atomic<int> good{0};
    for (int i = 0; i < 8; ++i)
        builds.emplace_back([&] { good += contents("aged/60/a") == Texts{list, list} ? 1 : 0; });
    builds.clear();
    EXPECT_EQ(good, 8);
    EXPECT_EQ(asked().size(), 2U);
}

TEST_F(FetchRepodata, WaitingForAnotherBuildIsTold) {
    serve("a/noarch/repodata.json", list);
    test::good(make_repodata(options.cache));
    const RepodataSlot slot(repodata_in(options.cache), server.url("a") + "/noarch");
    const auto lock = test::good(try_lock(slot.lock()));
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t build = fork();
    if (build == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(fetch("a") ? 0 : 1);
    }
    close(ends[1]);
    const Fd reader(ends[0]);
    std::string told;
    char buffer[4096];
    for (ssize_t got = 1; !told.contains("Waiting for another build, which fetches package lists\n") &&
                          (got = read(reader.get(), buffer, sizeof buffer)) > 0;)
        told.append(buffer, static_cast<std::size_t>(got));
    EXPECT_EQ(told, "Waiting for another build, which fetches package lists\n");
    flock(lock.file.get(), LOCK_UN); // the other process has inherited the descriptor
    int status = -1;
    waitpid(build, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(FetchRepodata, KilledAnywhere) {
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json", list);
    int downloading = 0;
    for (int moment = -1; moment < 12; ++moment) // a download takes 300 ms
        if (test::killed_at_work(server, moment * std::chrono::milliseconds(37),
                                 [&] { [[maybe_unused]] const auto ignored = contents("trickle/a"); }) &&
            moment >= 0)
            ++downloading;
    EXPECT_GT(downloading, 0);
    EXPECT_EQ(contents("trickle/a"), (Texts{list, list}));
}

TEST_F(FetchRepodata, ManyChannelsKeepTheirOrder) {
    std::vector<Channel> channels;
    for (const char* name : {"x", "y", "z"}) {
        serve(std::string(name) + "/noarch/repodata.json.zst",
              zstd(std::string("{\"c\": \"") + name + "\"}"));
        channels.push_back(channel(name));
    }
    const auto result = test::good(fetch_repodata(channels, {"linux-64", "noarch"}, config, options));
    ASSERT_EQ(result.size(), 6U);
    for (std::size_t i = 0; i < 6; ++i) {
        const auto& one = result[i];
        EXPECT_EQ(one.channel.name, channels[i / 2].name);
        EXPECT_EQ(one.subdir, i % 2 == 0 ? "linux-64" : "noarch");
        EXPECT_EQ(one.priority, 3 - static_cast<int>(i / 2));
        EXPECT_EQ(static_cast<bool>(one.json), i % 2 == 1);
    }
}

TEST_F(FetchRepodata, SecretsStayOutOfTheCache) {
    serve("t/to-ken/x", "");
    serve("a/linux-64/repodata.json", list);
    Channel secret = channel("a");
    secret.mirrors = {server.url("t/to-ken/a")};
    ASSERT_TRUE(fetch_repodata({secret}, {"linux-64"}, config, options));
    for (const auto& entry : fs::directory_iterator(repodata_in(options.cache))) {
        EXPECT_FALSE(entry.path().string().contains("to-ken"));
        EXPECT_FALSE(read_file(entry.path()).value().contains("to-ken")) << entry.path();
    }
    secret.mirrors = {server.url("t/bad/a")};
    const auto refused = test::error_of(fetch_repodata({secret}, {"noarch"}, config, options));
    EXPECT_FALSE(to_string(refused).contains("bad")) << to_string(refused);
}

TEST_F(FetchRepodata, SeveralUsersShareACache) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    fs::permissions(directory.path(), fs::perms(0755));
    serve("a/linux-64/repodata.json.zst", zstd(list));
    serve("a/noarch/repodata.json", list);
    options.cache = directory / "shared";
    fs::create_directory(options.cache);
    fs::permissions(options.cache, fs::perms(01777));
    const auto good = [&] {
        return contents("aged/1000/a") == Texts{list, list} ? "good" : contents("a")[0];
    };
    constexpr uid_t one = 65533;
    constexpr uid_t two = 65534;
    for (const uid_t user : {one, two, one})
        EXPECT_EQ(test::as_user(user, 022, good), "good");
    EXPECT_EQ(static_cast<unsigned>(fs::status(options.cache / "repodata").permissions()), 01777U);
    // A directory that another user made under one's name is not used.
    fs::remove_all(options.cache / "repodata" / std::to_string(two));
    EXPECT_EQ(test::as_user(one, 022,
                            [&] {
                                fs::create_directory(options.cache / "repodata" / std::to_string(two));
                                return std::string("made");
                            }),
              "made");
    EXPECT_EQ(test::as_user(two, 022, [&] { return contents("a")[0]; }),
              (options.cache / "repodata" / std::to_string(two)).string() +
                  ": cannot use the cache: it belongs to another user\nSet CONTAINERIZE_CACHE to another "
                  "directory.");
}

TEST_F(FetchRepodata, ListsOfLocalChannelsAreCopied) {
    serve("a/linux-64/repodata.json", list);
    serve("a/noarch/repodata.json.zst", zstd(list));
    const Channel local{.name = "local",
                        .url = "file://" + (directory / "served/a").string(),
                        .mirrors = {"file://" + (directory / "served/a").string()}};
    const auto read = [&] { return fetch_repodata({local}, {"linux-64", "noarch"}, config, options); };
    auto result = read();
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ((*result)[0].json.path.parent_path(), repodata_in(options.cache));
    EXPECT_EQ(content_of((*result)[0]), list);
    EXPECT_EQ((*result)[0].identity, sha256(list));
    EXPECT_EQ(content_of((*result)[1]), list);
    // Changes by the channel's owner do not affect what was read before.
    serve("a/linux-64/repodata.json", "{}");
    EXPECT_EQ(content_of((*result)[0]), list);
    // A change is noticed even if it has the same size and comes within the same second.
    auto changed = list;
    changed[20] = 'P';
    serve("a/linux-64/repodata.json", changed);
    serve("a/noarch/repodata.json.zst", zstd(changed));
    result = read();
    EXPECT_EQ((*result)[0].identity, sha256(changed));
    EXPECT_EQ(content_of((*result)[1]), changed);
    // A file that is not recent is not read again: its state has the digest.
    make_older(directory / "served/a/noarch/repodata.json.zst", 100);
    result = read();
    const auto inode = [](const fs::path& file) {
        struct stat info {};
        stat(file.c_str(), &info);
        return info.st_mtim.tv_nsec;
    };
    const auto first = inode((*result)[1].json.path);
    result = read();
    EXPECT_EQ(inode((*result)[1].json.path), first);

    options.offline = true;
    EXPECT_TRUE(read());
    fs::remove_all(directory / "served/a");
    result = read();
    ASSERT_FALSE(result);
    EXPECT_EQ(to_string(result.error()),
              local.url +
                  ": this is not a channel: there is no repodata.json for linux-64 or noarch\nGive the "
                  "directory that contains linux-64 and noarch. `conda index` creates their package lists.");
}

TEST(RepodataState, MaxAge) {
    EXPECT_EQ(max_age("public, max-age=30"), 30);
    EXPECT_EQ(max_age("Max-Age=1200"), 1200);
    EXPECT_EQ(max_age("max-age=99999999999999999999"), 0);
    EXPECT_EQ(max_age("max-age=999999999"), 86400);
    EXPECT_EQ(max_age("max-age=-5"), 0);
    EXPECT_EQ(max_age("no-cache, max-age=30"), 0);
    EXPECT_EQ(max_age("s-maxage=30"), 0);
    EXPECT_EQ(max_age(""), 0);
    RepodataState state;
    state.max_age = 100;
    state.checked = 1000;
    EXPECT_TRUE(is_fresh(state, 1, 1099));
    EXPECT_FALSE(is_fresh(state, 1, 1100));
    EXPECT_FALSE(is_fresh(state, 0, 1000));
    EXPECT_TRUE(is_fresh(state, 200, 1199));
    EXPECT_FALSE(is_fresh(state, 1, 999));
}

} // namespace containerize::conda
