// Finds the cache and its parts. Several users may share one, but do not trust each other's files.
#pragma once

#include "conda/conda_config.h"
#include "core/error.h"
#include "core/open_file.h"
#include "util/process.h"

#include <filesystem>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// Returns `configured`, else $CONTAINERIZE_CACHE, else $XDG_CACHE_HOME/containerize or
/// ~/.cache/containerize, else a private directory in $TMPDIR, /var/tmp or /tmp: the first that can be
/// written. Creates it. Fails with an input error if one of the first two is set but cannot be used.
Result<std::filesystem::path> cache_directory(const Environment& environment, const Located& configured = {});

/// The caches of this user without any setting, in order: where a variable names their place.
std::vector<std::filesystem::path> own_caches(const Environment& environment);

/// The directory of package archives, which all users of the cache share.
std::filesystem::path packages_in(const std::filesystem::path& cache);
/// The same for Python wheels.
std::filesystem::path wheels_in(const std::filesystem::path& cache);
/// The directory of this user's repodata.
std::filesystem::path repodata_in(const std::filesystem::path& cache);

/// The directory of this user's package images (packages/package_images.h).
std::filesystem::path images_in(const std::filesystem::path& cache);

/// The directory of this user's uv and of its cache (environments/pinned_uv.h).
std::filesystem::path uv_in(const std::filesystem::path& cache);

/// The directory of this user's environments for single commands (build/command_environments.h).
std::filesystem::path environments_in(const std::filesystem::path& cache);

/// Whether only this user and root can replace what is in uv_in(): others cannot be its parents' owners, who
/// may rename everything there.
bool is_uv_safe(const std::filesystem::path& cache);

/// Creates packages_in() or wheels_in(): whoever can write to the cache can write there, but only change
/// their own files.
Status make_shared(const std::filesystem::path& directory);
/// Creates repodata_in(), which other users cannot access.
Status make_repodata(const std::filesystem::path& cache);
/// Creates images_in(), which other users cannot access.
Status make_images(const std::filesystem::path& cache);
/// Creates uv_in(), which other users cannot access.
Status make_uv(const std::filesystem::path& cache);

/// Opens a file that this user put into the cache. Returns an empty OpenFile if it does not exist or another
/// user could have written it.
OpenFile open_own(const std::filesystem::path& file);
/// Writes a file for open_own(), readable only by this user whatever the umask.
Status write_own(const std::filesystem::path& file, std::string_view content);

} // namespace containerize::conda
