// Fetches repodata of channels and keeps it in a cache that concurrent builds share.
#pragma once

#include "conda/channel.h"
#include "conda/conda_config.h"
#include "core/error.h"
#include "core/open_file.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::conda {

/// The repodata of one subdir of one channel, as an immutable file in the cache.
struct Repodata {
    Channel channel;
    std::string subdir;   ///< "linux-64", "noarch"
    int priority = 0;     ///< the same for all subdirs of a channel; higher wins
    OpenFile json;        ///< plain JSON; empty if the channel has no such subdir
    bool sharded = false; ///< `json` is the index of the shards, which PackagePool::load() fetches as needed
    std::string identity; ///< SHA-256 of the file as it was read, perhaps compressed; names derived files
    std::filesystem::path cache; ///< directory for files derived from it
};

struct RepodataOptions {
    std::filesystem::path cache;                     ///< CachePlaces::repodata
    bool offline = false;                            ///< use only the cache, however old, never the network
    std::uint64_t largest = std::uint64_t{2} << 30U; ///< limit in bytes for the decompressed JSON
};

/// Returns the repodata, or the index of its shards, of all existing subdirs, channel by channel: from the
/// cache if it is still fresh according to the server (or local_repodata_ttl), otherwise fetched in parallel.
/// Copies local channels' files if they have changed. Fails if a channel has none of the subdirs. Priorities
/// descend in the order of `channels`.
Result<std::vector<Repodata>> fetch_repodata(const std::vector<Channel>& channels,
                                             const std::vector<std::string>& subdirs, const Config& config,
                                             const RepodataOptions& options);

} // namespace containerize::conda
