// Finds the packages that a request can reach, and fetches the shards with their records.
#pragma once

#include "conda/conda_config.h"
#include "conda/package_list.h"
#include "core/error.h"
#include "http/http.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace containerize::conda {

struct ShardAccess {
    Config config = {};
    bool offline = false;                                     ///< use only shards in the cache
    std::function<void(const http::Progress&)> progress = {}; ///< of the download
    /// Limit in bytes for all shards, packed and as JSON, so that no channel can fill the memory.
    std::uint64_t largest = std::uint64_t{1} << 30U;
};

/// Returns the `wanted` names, or those that match where it is a pattern, and the names of all direct and
/// indirect dependencies in any of the lists. Adds the shards of all to the lists: from the cache, otherwise
/// fetched in parallel, each as soon as a record that needs it is there.
Result<Names> reach(const std::vector<PackageList*>& lists, const std::vector<std::string>& wanted,
                    const ShardAccess& access);

} // namespace containerize::conda
