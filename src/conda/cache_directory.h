// Finds the cache and its parts. Several users may share one, but do not trust each other's files.
#pragma once

#include "conda/conda_config.h"
#include "core/error.h"
#include "core/open_file.h"
#include "util/process.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

/// Returns `configured`, else $CONTAINERIZE_CACHE, else $XDG_CACHE_HOME/containerize or
/// ~/.cache/containerize, else a private directory in $TMPDIR, /var/tmp or /tmp: the first that can be
/// written. Creates it. Fails with an input error if one of the first two is set but cannot be used.
Result<std::filesystem::path> cache_directory(const Environment& environment, const Located& configured = {});

/// In which cache each part is. All users of `shared` share its archives. The other parts are kept for each
/// user. They are in the user's own cache if another user could replace them in `shared`.
struct CachePlaces {
    std::filesystem::path shared; ///< from cache_directory()
    std::filesystem::path repodata, images, uv, environments;
};
CachePlaces places_in(const std::filesystem::path& shared, const Environment& environment);

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

/// Whether only this user and root can replace what is in uv_in().
bool is_uv_safe(const std::filesystem::path& cache);

/// Creates packages_in() or wheels_in(): whoever can write to the cache can write there, but only change
/// their own files.
Status make_shared(const std::filesystem::path& directory);
/// Creates repodata_in(), which other users cannot access.
Status make_repodata(const std::filesystem::path& cache);
/// Creates images_in(), which other users cannot access. One that was made for all stays so.
Status make_images(const std::filesystem::path& cache);
/// Creates images_in() for a site's cache: everybody may read it whom `umask_bits` permits to.
Status make_images_for_all(const std::filesystem::path& cache, mode_t umask_bits);
/// Creates uv_in(), which other users cannot access.
Status make_uv(const std::filesystem::path& cache);

/// A cache with packages that a site has packed for its users. They only read it.
struct SiteCache {
    std::filesystem::path directory;
    uid_t owner; ///< of the configuration file that names it: trusted as root is
};
struct SiteImages {
    std::vector<std::filesystem::path> directories; ///< as images_in(), of each user who has filled it
    std::string obstacle = {};                      ///< why none of those that are there can be used
};
/// Those that only root, this user or the cache's `owner` can change.
SiteImages images_of_site(const SiteCache& cache);

/// Opens a file that this user put into the cache. Returns an empty OpenFile if it does not exist or another
/// user could have written it.
OpenFile open_own(const std::filesystem::path& file);
/// Writes a file for open_own(), readable only by this user whatever the umask.
Status write_own(const std::filesystem::path& file, std::string_view content);

} // namespace containerize::conda
