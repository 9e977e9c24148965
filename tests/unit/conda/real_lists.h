// The channels in tests/data.
#pragma once

#include "../data.h"
#include "conda/repodata.h"

#include <set>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// All channels below `directory` of the data.
inline std::set<std::filesystem::path> real_channels(std::string_view directory) {
    std::set<std::filesystem::path> channels;
    for (const char* name : {"/repodata.json", "/repodata.json.zst"})
        for (const auto& file : test::data_files(directory, name))
            channels.insert(file.parent_path().parent_path());
    return channels;
}

/// Their package lists, unpacked into `cache`.
inline std::vector<Repodata> real_lists(std::string_view directory, const std::filesystem::path& cache) {
    const auto config = Config();
    std::vector<Channel> channels;
    for (const auto& channel : real_channels(directory))
        channels.push_back(resolve_channel({channel.string(), {}}, config).value().front());
    auto lists =
        fetch_repodata(channels, {"linux-64", "noarch", "linux-fake"}, config, {.cache = cache}).value();
    std::erase_if(lists, [](const Repodata& list) { return !list.json; });
    return lists;
}

} // namespace containerize::conda
