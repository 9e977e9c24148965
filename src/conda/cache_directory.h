// Where the cache is, and what is in it. Several users may share one: nobody believes what another has made.
#pragma once

#include "conda/config.h"
#include "util/error.h"
#include "util/open_file.h"
#include "util/process.h"

#include <filesystem>
#include <string_view>

namespace containerize::conda {

/// `configured`, if it is not empty, else $CONTAINERIZE_CACHE, else $XDG_CACHE_HOME/containerize, else
/// ~/.cache/containerize; where those cannot be written, a directory of this user's own in $TMPDIR or
/// /var/tmp. Made if it is not there.
Result<std::filesystem::path> cache_directory(const Environment& environment, const Located& configured = {});

/// The archives of all who share the cache.
std::filesystem::path packages_in(const std::filesystem::path& cache);
/// This user's package lists.
std::filesystem::path repodata_in(const std::filesystem::path& cache);

/// Makes packages_in(): who may write to the cache may write there, too, and only to what is his own.
Status make_packages(const std::filesystem::path& cache);
/// Makes repodata_in(), which nobody else can reach.
Status make_repodata(const std::filesystem::path& cache);

/// What this user has put into the cache earlier; nothing if it is not there, or if another could have
/// written it.
OpenFile open_own(const std::filesystem::path& file);
/// Writes such a file, whatever the umask.
Status write_own(const std::filesystem::path& file, std::string_view content);

} // namespace containerize::conda
