#include "../good.h"
#include "../http_server.h"
#include "conda/cache_directory.h"
#include "conda/package_pool.h"
#include "conda/repodata.h"
#include "conda/repodata_state.h"
#include "conda/solver.h"
#include "core/mapped_file.h"
#include "shards.h"

#include <algorithm>
#include <ctime>
#include <regex>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

using nlohmann::json;
using test::HttpServer;
using test::Shards;
using test::TemporaryDirectory;

json record_of(const std::string& name, const std::string& version,
               const std::vector<std::string>& depends = {}) {
    return {{"name", name},
            {"version", version},
            {"build", "0"},
            {"build_number", 0},
            {"depends", depends},
            {"sha256", sha256(name + version)},
            {"md5", std::string(32, 'a')},
            {"size", 1000},
            {"timestamp", 1'700'000'000'000},
            {"subdir", "linux-64"}};
}

/// Three packages that need each other, one of them in both formats, and one that nobody needs.
json small_channel() {
    json packages = json::object();
    for (const auto& record : {record_of("top", "1", {"middle >=2"}), record_of("top", "2", {"middle >=1"}),
                               record_of("middle", "1"), record_of("middle", "2", {"bottom"}),
                               record_of("bottom", "1", {"top"}), record_of("alone", "1")})
        packages[record["name"].get<std::string>() + "-" + record["version"].get<std::string>() +
                 "-0.conda"] = record;
    return {{"packages",
             {{"top-2-0.tar.bz2", record_of("top", "2")}, {"bottom-0-0.tar.bz2", record_of("bottom", "0")}}},
            {"packages.conda", packages}};
}

class ShardedRepodata : public testing::Test {
protected:
    ShardedRepodata() : server_(directory_ / "served") {
        options_.cache = directory_ / "cache";
        config_.http.first_pause = std::chrono::milliseconds(1);
        config_.http.retries = 1;
    }

    [[nodiscard]] std::vector<Channel> channels() const {
        const auto url = server_.url("c");
        return {{.name = "c", .url = url, .mirrors = {url}}};
    }

    /// The solution as "name-version-build", sorted; or the error.
    [[nodiscard]] std::vector<std::string> solved(const std::vector<std::string>& specs) const {
        const auto records = solve_for(specs);
        if (!records)
            return {std::regex_replace(to_string(records.error()), std::regex(server_.port()), "PORT")};
        std::vector<std::string> names;
        std::ranges::transform(*records, std::back_inserter(names), &PackageRecord::distribution);
        std::ranges::sort(names);
        return names;
    }

    [[nodiscard]] Result<std::vector<PackageRecord>> solve_for(const std::vector<std::string>& specs) const {
        SolveRequest request;
        request.pip_with_python = false;
        for (const auto& text : specs)
            request.wanted.push_back({.spec = test::good(parse_match_spec(text))});
        const auto lists = TRY(fetch_repodata(channels(), {"linux-64", "noarch"}, config_, options_));
        auto pool = TRY(PackagePool::load(
            lists, names_in(request), {},
            {.shards = {.config = config_, .offline = options_.offline, .largest = largest_}}));
        auto solution = TRY(conda::solve(pool, std::move(request)));
        return std::move(solution.install);
    }

    /// The files that were asked for since the last call, without the directory: digests by the name of the
    /// shard.
    std::vector<std::string> asked(const Shards& shards = Shards(json::object())) {
        std::map<std::string, std::string> names;
        for (const auto& [name, content] : shards.contents)
            names["/c/linux-64/" + sha256(test::zstd(test::msgpack(content))) + ".msgpack.zst"] = name;
        std::vector<std::string> found;
        const auto seen = server_.seen();
        for (; asked_before_ < seen.size(); ++asked_before_) {
            const auto& path = seen[asked_before_].path;
            found.push_back(names.contains(path) ? names[path] : path);
        }
        std::ranges::sort(found);
        return found;
    }

    void serve(const std::string& name, const std::string& content) const {
        directory_.write("served/c/" + name, content);
    }
    [[nodiscard]] fs::path cached(const std::string& digest) const {
        return repodata_in(options_.cache) / (digest + ".shard");
    }

    TemporaryDirectory directory_;
    HttpServer server_;
    Config config_;
    RepodataOptions options_;
    std::uint64_t largest_ = ShardAccess().largest;
    std::size_t asked_before_ = 0;
};

using Texts = std::vector<std::string>;

/// A map in MessagePack with the keys of all these, which may repeat.
std::string map_of_all(const std::vector<json>& objects) {
    std::string map(1, static_cast<char>(0x80U + objects.size()));
    for (const auto& one : objects)
        map += test::msgpack(one).substr(1);
    return map;
}

} // namespace

TEST_F(ShardedRepodata, OnlyShardsOfPackagesThatAreReachedAreFetched) {
    Shards shards(small_channel());
    shards.write(directory_, "served/c/linux-64");
    serve("noarch/repodata.json", R"({"packages": {}})");
    EXPECT_EQ(solved({"top=1"}), (Texts{"bottom-1-0", "middle-2-0", "top-1-0"}));
    EXPECT_EQ(asked(shards), (Texts{"/c/linux-64/repodata_shards.msgpack.zst", "/c/noarch/repodata.json",
                                    "/c/noarch/repodata.json.bz2", "/c/noarch/repodata.json.zst",
                                    "/c/noarch/repodata_shards.msgpack.zst", "bottom", "middle", "top"}));
    // The index is asked for with its ETag, shards are not asked for again.
    EXPECT_EQ(solved({"top=1", "alone"}).size(), 4U);
    EXPECT_EQ(asked(shards),
              (Texts{"/c/linux-64/repodata_shards.msgpack.zst", "/c/noarch/repodata.json", "alone"}));
    const auto digest = sha256(test::zstd(test::msgpack(shards.contents["top"])));
    EXPECT_EQ(test::mode_of(cached(digest)), 0600U);
}

TEST_F(ShardedRepodata, RecordsAreThoseOfTheWholeList) {
    Shards(small_channel()).write(directory_, "served/c/linux-64");
    const auto by_shards = test::good(solve_for({"top=1"}));
    serve("linux-64/repodata.json", small_channel().dump());
    config_.use_shards = false;
    const auto by_list = test::good(solve_for({"top=1"}));
    ASSERT_EQ(by_shards.size(), by_list.size());
    for (std::size_t at = 0; at < by_list.size(); ++at) {
        EXPECT_EQ(to_json(by_shards[at]), to_json(by_list[at]));
        EXPECT_EQ(by_list[at].sha256, sha256(by_list[at].name + by_list[at].version));
    }
}

TEST_F(ShardedRepodata, APatternReachesAllNamesThatMatch) {
    auto list = small_channel();
    list["packages.conda"]["p-1-0.conda"] = record_of("p", "1", {"mid*"});
    Shards shards(list);
    shards.write(directory_, "served/c/linux-64");
    EXPECT_EQ(solved({"p"}), (Texts{"bottom-1-0", "middle-2-0", "p-1-0", "top-2-0"}));
}

TEST_F(ShardedRepodata, ShardsAndArchivesMayBeElsewhere) {
    Shards shards(small_channel());
    shards.index["info"] = {{"shards_base_url", "./shards/"}, {"base_url", "../files"}};
    shards.write(directory_, "served/c/linux-64");
    EXPECT_EQ(test::good(solve_for({"alone"}))[0].url, server_.url("c/linux-64/../files/alone-1-0.conda"));
    shards.index["info"]["base_url"] = server_.url("d/");
    shards.index["info"]["shards_base_url"] = "/c/linux-64/shards/";
    shards.index["info"]["created_at"] = "2026-01-01T00:00:00Z";
    const auto index = [&] {
        serve("linux-64/repodata_shards.msgpack.zst", test::zstd(test::msgpack(shards.index)));
    };
    index();
    EXPECT_EQ(test::good(solve_for({"alone"}))[0].url, server_.url("d/alone-1-0.conda"));
    shards.index["info"]["shards_base_url"] = "file:///etc/";
    index();
    const Texts refused{"c/linux-64: a channel's package list is damaged: its base_url or shards_base_url is "
                        "not an http or https URL\nTry again later, or tell the channel's maintainers.\n"
                        "`repodata_use_shards: false` in .condarc uses the channel's whole list instead."};
    EXPECT_EQ(solved({"top"}), refused);
    for (const char* text : {"ftp://h/", "//h/", "https://h/a b", "https://h/\n- evil", "x\x7F"}) {
        shards.index["info"]["shards_base_url"] = text;
        index();
        EXPECT_EQ(solved({"top"}), refused) << text;
    }
    shards.index["info"]["shards_base_url"] = "http://169.254.169.254/latest/";
    index();
    EXPECT_NE(solved({"top"})[0].find("the server refers to a link-local address"), std::string::npos);
    // No server may send us to this machine's files.
    shards.index["info"] = {{"shards_base_url", "shards"}, {"base_url", "file:///etc"}};
    index();
    EXPECT_EQ(solved({"top"}), refused);
    config_.use_shards = false;
    json whole = {{"info", {{"base_url", "file:///etc"}}}};
    whole.update(small_channel());
    serve("linux-64/repodata.json", whole.dump());
    EXPECT_EQ(test::good(solve_for({"alone"}))[0].url, server_.url("c/linux-64/alone-1-0.conda"));
}

TEST_F(ShardedRepodata, LoginsAreNotSentElsewhere) {
    const HttpServer other(directory_ / "other");
    Shards shards(small_channel());
    shards.write(directory_, "other");
    shards.index["info"]["shards_base_url"] = other.url("");
    config_.http.logins = {{.url = server_.url("c"), .user = "user", .password = "secret"}};
    serve("linux-64/repodata_shards.msgpack.zst", test::zstd(test::msgpack(shards.index)));
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    EXPECT_FALSE(server_.seen().front().authorization.empty());
    ASSERT_EQ(other.seen().size(), 1U);
    for (const auto& request : other.seen())
        EXPECT_EQ(request.authorization, "");
}

TEST_F(ShardedRepodata, AChannelWithoutShardsIsRememberedAsSuch) {
    serve("linux-64/repodata.json.zst", test::zstd(small_channel().dump()));
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    EXPECT_EQ(asked().size(), 6U);
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    EXPECT_EQ(asked(), (Texts{"/c/linux-64/repodata.json.zst", "/c/noarch/repodata.json"}));
}

TEST_F(ShardedRepodata, TheConfigurationDecidesWhetherTheyAreUsed) {
    Shards(small_channel()).write(directory_, "served/c/linux-64");
    serve("linux-64/repodata.json",
          R"({"packages": {"alone-9-0.tar.bz2": {"name": "alone", "version": "9", "build": "0"}}})");
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    config_.use_shards = false;
    EXPECT_EQ(solved({"alone"}), Texts{"alone-9-0"});
    config_.use_shards = true;
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    // A list on disk is read whole.
    const auto local = test::good(resolve_channel({(directory_ / "served/c").string(), {}}, config_));
    const auto lists = test::good(fetch_repodata(local, {"linux-64"}, config_, options_));
    EXPECT_FALSE(lists[0].sharded);
}

TEST_F(ShardedRepodata, OfflineTheCacheIsUsed) {
    Shards shards(small_channel());
    shards.write(directory_, "served/c/linux-64");
    EXPECT_EQ(solved({"top"}).size(), 3U);
    asked();
    options_.offline = true;
    EXPECT_EQ(solved({"top"}).size(), 3U);
    EXPECT_EQ(
        solved({"alone"}),
        Texts{"c/linux-64: the cache does not have the package list of alone: --offline forbids using the "
              "network\nRun once without --offline, with the same cache and the same packages, on a machine "
              "that "
              "can reach the channel."});
    EXPECT_TRUE(asked().empty());
    // For another request, the index was renewed, and now names another shard of a package.
    options_.offline = false;
    shards.contents["top"]["packages.conda"]["top-3-0.conda"] = record_of("top", "3");
    shards.write(directory_, "served/c/linux-64");
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    options_.offline = true;
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    EXPECT_NE(solved({"top"})[0].find("the cache does not have the package list of top"), std::string::npos);
}

TEST_F(ShardedRepodata, KeysMayRepeat) {
    // The last name counts, for the index and for the solver.
    const auto serve_shard = [&](const std::string& packed) {
        serve("linux-64/" + sha256(packed) + ".msgpack.zst", packed);
        const json old = {{"shards", {{"top", test::bytes_of(std::string(64, 'a'))}}}};
        const json now = {{"shards", {{"top", test::bytes_of(sha256(packed))}}}};
        serve("linux-64/repodata_shards.msgpack.zst", test::zstd(map_of_all({old, now})));
    };
    const auto file = test::msgpack("top-1-0.conda");
    const auto shard = [&](const std::string& records, std::size_t count) {
        return test::zstd("\x81" + test::msgpack("packages.conda") +
                          std::string(1, static_cast<char>(0x80U + count)) + records);
    };
    const auto as_top =
        map_of_all({{{"name", "alone"}}, {{"name", "top"}}, {{"version", "1"}}, {{"build", "0"}}});
    serve_shard(shard(file + as_top + file + as_top, 2));
    EXPECT_EQ(solved({"top"}), Texts{"top-1-0"});
    const auto as_alone = map_of_all({{{"name", "top"}}, {{"name", "alone"}}, {{"version", "1"}}});
    serve_shard(shard(file + as_alone, 1));
    EXPECT_NE(solved({"top"})[0].find("the shard of top has records of alone"), std::string::npos);
}

TEST_F(ShardedRepodata, AllShardsTogetherAreLimited) {
    Shards(small_channel()).write(directory_, "served/c/linux-64");
    largest_ = 1500;
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    const std::string refused =
        "c/linux-64: a channel's package list is damaged: the packages that the request "
        "can reach need more than 1.5 kB\n";
    EXPECT_TRUE(solved({"top"})[0].starts_with(refused)); // from the server
    EXPECT_TRUE(solved({"top"})[0].starts_with(refused)); // from the cache
}

TEST_F(ShardedRepodata, DamageIsRefused) {
    Shards shards(small_channel());
    const std::string start = "c/linux-64: a channel's package list is damaged: ";
    const auto refused = [&](const std::string& packed) {
        // Each time another digest, so that nothing comes from the cache.
        shards.index["shards"] = {{"top", test::bytes_of(sha256(packed))}};
        serve("linux-64/" + sha256(packed) + ".msgpack.zst", packed);
        serve("linux-64/repodata_shards.msgpack.zst", test::zstd(test::msgpack(shards.index)));
        const auto message = solved({"top"}).at(0);
        EXPECT_TRUE(message.starts_with(start)) << message;
        return message.substr(start.size(), message.find('\n') - start.size());
    };
    const auto whole = test::zstd(test::msgpack(shards.contents["top"]));
    EXPECT_EQ(refused(whole.substr(0, whole.size() - 9)), "the shard of top: it is truncated");
    EXPECT_EQ(refused(whole + "x"), "the shard of top: more data follows it");
    EXPECT_EQ(refused("no zstd"), "the shard of top: Unknown frame descriptor");
    EXPECT_EQ(refused(""), "the shard of top: it is truncated");
    EXPECT_EQ(refused(test::zstd("\xC1")),
              "the shard of top: it contains a value of an unknown type (at byte 1)");
    EXPECT_EQ(refused(test::zstd(std::string(1U << 20U, '\x91'))),
              "the shard of top: it is nested too deeply (at byte 17)");
    EXPECT_EQ(refused(test::zstd(std::string(100U << 20U, '\0'))),
              "the shard of top: it unpacks to more than 67.1 MB");
    EXPECT_EQ(refused(test::zstd(test::msgpack(shards.contents["alone"]))),
              "the shard of top has records of alone");
}

TEST_F(ShardedRepodata, ADamagedIndexIsRefused) {
    Shards shards(small_channel());
    const auto refused = [&](const std::string& packed) {
        serve("linux-64/repodata_shards.msgpack.zst", packed);
        const auto message = solved({"top"}).at(0);
        return message.substr(0, message.find('\n'));
    };
    const auto damaged = [&](const json& index) { return refused(test::zstd(test::msgpack(index))); };
    const std::string start = "c/linux-64: a channel's package list is damaged: ";
    EXPECT_EQ(damaged({{"version", 2}, {"info", json::object()}, {"shards", json::object()}}),
              start + "its version is not known");
    EXPECT_EQ(damaged({{"shards", {{"../x", test::bytes_of(std::string(64, 'a'))}}}}),
              start + "it contains an invalid name or checksum");
    for (const auto& digest : {std::string("no digest"), std::string(64, 'A'), std::string(63, 'a')})
        EXPECT_EQ(damaged({{"shards", {{"top", digest}}}}),
                  start + "it contains an invalid name or checksum");
    EXPECT_EQ(damaged({{"shards", {{"", test::bytes_of(std::string(64, 'a'))}}}}),
              start + "it contains an invalid name or checksum");
    EXPECT_EQ(damaged({{"shards", 3}}).substr(0, start.size()), start);
    EXPECT_EQ(refused("<html>"),
              "http://127.0.0.1:PORT/c/linux-64/repodata_shards.msgpack.zst: cannot use this package "
              "list: Unknown frame descriptor");
    EXPECT_EQ(damaged(json::array({1})),
              "http://127.0.0.1:PORT/c/linux-64/repodata_shards.msgpack.zst: this is not a "
              "package list: it is not JSON");
}

TEST_F(ShardedRepodata, AWrongShardIsNotUsedAndTheIndexIsAskedForAgain) {
    Shards shards(small_channel());
    shards.write(directory_, "served/c/linux-64");
    config_.local_repodata_ttl = 1000;
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    const auto digest = sha256(test::zstd(test::msgpack(shards.contents["top"])));
    serve("linux-64/" + digest + ".msgpack.zst", "another file");
    const auto message = solved({"top"})[0];
    EXPECT_NE(message.find("its checksum is wrong: expected sha256 " + digest), std::string::npos) << message;
    fs::remove(directory_ / ("served/c/linux-64/" + digest + ".msgpack.zst"));
    const auto absent = solved({"top"})[0];
    EXPECT_NE(absent.find("the server does not have this file"), std::string::npos);
    EXPECT_TRUE(absent.ends_with("\nThis is the package list of top. The channel may have changed in this "
                                 "moment: try again. `repodata_use_shards: false` in .condarc uses the "
                                 "channel's whole list instead."))
        << absent;
    // The channel has changed meanwhile.
    shards.contents["top"]["packages.conda"]["top-3-0.conda"] = record_of("top", "3");
    shards.write(directory_, "served/c/linux-64");
    EXPECT_EQ(solved({"top"}), Texts{"top-3-0"});
    // A changed file in the cache is not believed.
    const auto now = sha256(test::zstd(test::msgpack(shards.contents["top"])));
    ASSERT_TRUE(write_own(cached(now), "changed"));
    EXPECT_EQ(solved({"top"}), Texts{"top-3-0"});
    chmod(cached(now).c_str(), 0666);
    asked();
    EXPECT_EQ(solved({"top"}), Texts{"top-3-0"});
    EXPECT_EQ(asked(shards), (Texts{"/c/noarch/repodata.json", "top"}));
}

TEST_F(ShardedRepodata, ShardsThatWereNotUsedForLongAreRemoved) {
    Shards(small_channel()).write(directory_, "served/c/linux-64");
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    const auto old = cached(std::string(64, 'a'));
    ASSERT_TRUE(write_own(old, "old"));
    EXPECT_TRUE(is_repodata_file(old.filename().string()));
    const timespec then{.tv_sec = std::time(nullptr) - 31L * 86400, .tv_nsec = 0};
    const timespec times[2] = {then, then};
    utimensat(AT_FDCWD, old.c_str(), times, 0);
    EXPECT_EQ(solved({"alone"}), Texts{"alone-1-0"});
    EXPECT_FALSE(fs::exists(old));
}

} // namespace containerize::conda
