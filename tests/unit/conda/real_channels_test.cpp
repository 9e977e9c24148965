#include "../good.h"
#include "../http_server.h"
#include "conda/package_cache.h"
#include "conda/package_pool.h"
#include "conda/solver.h"
#include "real_lists.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace containerize::conda {

namespace {

using nlohmann::json;
using test::HttpServer;
using test::TemporaryDirectory;

std::vector<PackageRecord> records_of(const Repodata& list) {
    std::vector<PackageRecord> records;
    const auto content = json::parse(read_file(list.json.path).value());
    for (const char* section : {"packages", "packages.conda"}) {
        const auto packages = content.value(section, json::object());
        for (const auto& [file, about] : packages.items()) {
            PackageRecord record;
            record.file_name = file;
            record.channel = list.channel.url;
            record.url = list.channel.url + "/" + list.subdir + "/" + file;
            record.sha256 = about.value("sha256", "");
            record.md5 = about.value("md5", "");
            record.size = about.value("size", std::uint64_t{0});
            records.push_back(std::move(record));
        }
    }
    return records;
}

} // namespace

TEST(RealChannels, FromDiskAndFromAServer) {
    const auto root = test::data_directory / "channels";
    const TemporaryDirectory directory;
    const HttpServer server(root);
    auto config = Config();
    config.use_shards = false;
    const RepodataOptions options{.cache = directory.path()};
    std::size_t lists = 0;
    std::size_t packages = 0;
    for (const auto& path : real_channels("channels")) {
        const auto local = test::good(resolve_channel({path.string(), {}}, config));
        const auto relative = fs::relative(path, root).string();
        const auto served = test::good(resolve_channel({server.url(relative), {}}, config));
        const auto from_disk =
            fetch_repodata(local, {"linux-64", "noarch", "linux-fake", "win-64"}, config, options);
        const auto from_server =
            fetch_repodata(served, {"linux-64", "noarch", "linux-fake", "win-64"}, config, options);
        ASSERT_TRUE(from_disk) << to_string(from_disk.error());
        ASSERT_TRUE(from_server) << to_string(from_server.error());
        for (std::size_t at = 0; at < from_disk->size(); ++at) {
            const auto& disk = (*from_disk)[at];
            const auto& fetched = (*from_server)[at];
            ASSERT_EQ(!disk.json, !fetched.json) << path << disk.subdir;
            if (!disk.json) continue;
            ++lists;
            EXPECT_EQ(json::parse(read_file(disk.json.path).value()),
                      json::parse(read_file(fetched.json.path).value()));
            for (const auto& list : {disk, fetched}) {
                auto records = records_of(list);
                // Some package lists contain archives that the data does not have.
                std::erase_if(records, [&](const auto& record) {
                    return !fs::exists(path / list.subdir / record.file_name);
                });
                const auto archives =
                    test::good(fetch_packages(records, {list.channel}, config, {.cache = directory.path()}));
                packages += archives.size();
            }
        }
    }
    EXPECT_GE(lists, 20U);
    EXPECT_GE(packages, 100U);
}

TEST(RealChannels, ShardsOfCondaIndex) {
    const auto root = test::data_directory / "channels";
    const TemporaryDirectory directory;
    const HttpServer server(root);
    auto config = Config();
    const auto channels = test::good(resolve_channel({server.url("conda_format_repo"), {}}, config));
    const auto solved = [&] {
        SolveRequest request;
        request.wanted.push_back({.spec = test::good(parse_match_spec("zlib")), .channels = {}});
        const auto lists =
            test::good(fetch_repodata(channels, {"linux-64", "noarch"}, config, {.cache = directory.path()}));
        EXPECT_EQ(lists[0].sharded, config.use_shards);
        auto pool =
            test::good(PackagePool::load(lists, names_in(request), {}, {.shards = {.config = config}}));
        json packages;
        const auto solution = test::good(solve(pool, std::move(request)));
        for (const auto& record : solution.install)
            packages.push_back(to_json(record));
        return packages;
    };
    const auto by_shards = solved();
    EXPECT_EQ(by_shards.size(), 2U);
    config.use_shards = false;
    EXPECT_EQ(solved(), by_shards);
}

} // namespace containerize::conda
