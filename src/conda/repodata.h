// The package lists of channels: fetched, verified, and kept in a cache that builds share.
#pragma once

#include "conda/channel.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::conda {

/// The package list of one subdir of one channel, as a file in the cache that does not change under us.
struct Repodata {
    Channel channel;
    std::string subdir;         ///< "linux-64", "noarch"
    int priority = 0;           ///< the same for all subdirs of a channel; higher wins
    std::filesystem::path json; ///< plain JSON; empty if the channel has no such subdir
    std::string identity; ///< of the content: the same exactly when the bytes are; names solved-form caches
    std::filesystem::path cache; ///< directory in which the solver may keep files named after `identity`
};

} // namespace containerize::conda
