// Package archives, as they were downloaded: a cache that builds, users' own and concurrent ones, share.
#pragma once

#include "conda/channel.h"
#include "conda/config.h"
#include "conda/package_record.h"
#include "util/error.h"
#include "util/open_file.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

struct PackageOptions {
    std::filesystem::path cache;   ///< as cache_directory() says
    bool offline = false;          ///< what the caches have; never the network
    bool allow_unverified = false; ///< records without any digest; otherwise they are an error
    mode_t umask_bits = 022;
};

/// The archives of `records`, in their order, downloaded where no cache has them, copied where others could
/// change what a cache has. Size and sha256 (else md5) of each have been verified in this very call, by the
/// descriptor that is returned: only that one may be read.
Result<std::vector<OpenFile>> fetch_packages(const std::vector<PackageRecord>& records,
                                             const std::vector<Channel>& channels, const Config& config,
                                             const PackageOptions& options);

struct CacheUse {
    std::uint64_t files = 0, bytes = 0;
};
struct CacheInfo {
    CacheUse packages, repodata;
};

Result<CacheInfo> cache_info(const std::filesystem::path& cache);

/// Removes what nobody used for `unused`; zero removes everything but what a running build downloads. In a
/// shared cache, what other users have there stays.
Result<CacheInfo> clean_cache(const std::filesystem::path& cache, std::chrono::hours unused);

} // namespace containerize::conda
