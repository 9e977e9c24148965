// Package archives, as they were downloaded: a cache that builds, users' own and concurrent ones, share.
#pragma once

#include "conda/channel.h"
#include "conda/config.h"
#include "conda/package_record.h"
#include "util/error.h"
#include "util/process.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace containerize::conda {

/// `configured`, if it is not empty, else $CONTAINERIZE_CACHE, else $XDG_CACHE_HOME/containerize, else
/// ~/.cache/containerize; where those cannot be written, a directory of this user's own in $TMPDIR or
/// /var/tmp. Made if it is not there.
Result<std::filesystem::path> cache_directory(const Environment& environment, const Located& configured = {});

struct PackageOptions {
    std::filesystem::path cache;   ///< as cache_directory() says
    bool offline = false;          ///< what the caches have; never the network
    bool allow_unverified = false; ///< records without any digest; otherwise they are an error
    /// As each archive is there and verified, in no order, from the calling thread; may be empty.
    std::function<Status(std::size_t index, const std::filesystem::path& archive)> ready;
};

/// The archives of `records`, in their order, downloaded where no cache has them, copied where others could
/// change what a cache has. Size and sha256 (else md5) of each have been verified in this very call.
Result<std::vector<std::filesystem::path>> fetch_packages(const std::vector<PackageRecord>& records,
                                                          const std::vector<Channel>& channels,
                                                          const Config& config,
                                                          const PackageOptions& options);

struct CacheUse {
    std::uint64_t files = 0, bytes = 0;
};
struct CacheInfo {
    CacheUse packages, repodata;
};

Result<CacheInfo> cache_info(const std::filesystem::path& cache);

/// Removes what nobody used for `unused`; zero removes everything but what a running build downloads.
Result<CacheInfo> clean_cache(const std::filesystem::path& cache, std::chrono::hours unused);

} // namespace containerize::conda
