// The package lists of channels: fetched, verified, and kept in a cache that builds share.
#pragma once

#include "conda/channel.h"
#include "conda/config.h"
#include "util/error.h"
#include "util/open_file.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::conda {

/// The package list of one subdir of one channel, as a file in the cache that does not change under us.
struct Repodata {
    Channel channel;
    std::string subdir;   ///< "linux-64", "noarch"
    int priority = 0;     ///< the same for all subdirs of a channel; higher wins
    OpenFile json;        ///< plain JSON, which nobody changes; none if the channel has no such subdir
    std::string identity; ///< of the content: the same exactly when the bytes are; names solved-form caches
    std::filesystem::path cache; ///< directory in which the solver may keep files named after `identity`
};

struct RepodataOptions {
    std::filesystem::path cache;                     ///< as cache_directory() says
    bool offline = false;                            ///< what the cache has, however old; never the network
    std::uint64_t largest = std::uint64_t{2} << 30U; ///< bytes of JSON, after decompression
};

/// The package lists of all channels and subdirs, channel by channel, as far as they exist: from the cache
/// where the server (or local_repodata_ttl) says that it still holds, otherwise fetched in parallel. Lists of
/// local channels are copied when they have changed. A channel that has none of the subdirs is an error.
/// Priorities descend with the order of `channels`.
Result<std::vector<Repodata>> fetch_repodata(const std::vector<Channel>& channels,
                                             const std::vector<std::string>& subdirs, const Config& config,
                                             const RepodataOptions& options);

} // namespace containerize::conda
