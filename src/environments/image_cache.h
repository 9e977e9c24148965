// The package images that a build uses.
#pragma once

#include "conda/cache_directory.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "packages/package_images.h"
#include "util/cache_limits.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::environments {

/// This user's images, and those of the site's caches. If the directory in the user's cache cannot be used,
/// new ones are made in the staging directory, for this build only. No other process removes an image of this
/// user's until the build ends.
Result<packages::PackageImages> open_images(const BuildContext& context);

/// `part` as for packages::ImageKey.
packages::ImageKey image_key(const BuildContext& context, std::string sha256, std::string part = {});

/// For the images of packages, which are packed several at once.
image::WriterOptions options_of_images(const BuildContext& context);

/// To be called when the build has ended: removes what exceeds the configured limits, if anything can have
/// changed since that was done before. Failures are only logged.
void apply_cache_limits(const BuildContext& context);

struct RemovedPackages {
    std::uint64_t files = 0, bytes = 0;
    bool in_use = false; ///< a build runs, so what was used in the last day was kept
};
/// Removes this user's archives and images that exceed the limits.
Result<RemovedPackages> apply_limits(const conda::CachePlaces& places, const CacheLimits& limits);

/// What the limits are for: this user's archives and images.
std::vector<CachedFile> limited_files(const conda::CachePlaces& places);

/// Whether users have this cache as one of a site.
bool is_of_site(const std::filesystem::path& cache, const std::vector<conda::SiteCache>& site_caches);

} // namespace containerize::environments
