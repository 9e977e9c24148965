// A cache of package archives, shared by concurrent builds and by users.
#pragma once

#include "conda/cache_directory.h"
#include "conda/channel.h"
#include "conda/conda_config.h"
#include "conda/package_record.h"
#include "core/error.h"
#include "core/open_file.h"
#include "util/cache_limits.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

struct PackageOptions {
    std::filesystem::path cache;   ///< from cache_directory()
    bool wheels = false;           ///< the packages are Python wheels
    bool offline = false;          ///< use only the caches, never the network
    bool allow_unverified = false; ///< accept records without a digest, otherwise an error
    mode_t umask_bits = 022;
};

/// Returns the archives of `records`, in their order. Downloads those that no cache has, and copies those
/// from caches that others can modify. This call verifies size and sha256 (else md5) through the returned
/// descriptor, so only that one may be read.
Result<std::vector<OpenFile>> fetch_packages(const std::vector<PackageRecord>& records,
                                             const std::vector<Channel>& channels, const Config& config,
                                             const PackageOptions& options);

struct CacheUse {
    std::uint64_t files = 0, bytes = 0;
    std::uint64_t foreign = 0; ///< further files, which are not the cache's

    CacheUse& operator+=(const CacheUse& more) {
        files += more.files;
        bytes += more.bytes;
        foreign += more.foreign;
        return *this;
    }
};
struct CacheInfo {
    CacheUse packages; ///< of conda, and wheels
    CacheUse repodata;
    CacheUse uv; ///< the program and its own cache
};

Result<CacheInfo> cache_info(const CachePlaces& places);

/// Removes files that were not used for `unused`; zero removes everything but running downloads. Other users'
/// files in a shared cache stay, and so do files that are not the cache's.
Result<CacheInfo> clean_cache(const CachePlaces& places, std::chrono::hours unused);

/// The archives of this user, also in a shared cache.
std::vector<CachedFile> archives_in(const std::filesystem::path& cache);

} // namespace containerize::conda
