// A directory to mount on, at a path where the disk has none: an installation that was moved needs its first
// path.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <vector>

namespace containerize::runtime {

/// Makes `path` exist as a directory in this mount namespace, which is ours. Returns the directories that had
/// to be made on disk for it, parents first: the caller removes them when the session ends.
///
/// Where the user may write into the nearest directory that exists, the missing ones are made there.
/// (Covering such a directory instead would swallow what programs write into it.) Elsewhere that directory is
/// covered by a read-only one in memory, with everything that it holds bound into it, and the missing ones.
Result<std::vector<std::filesystem::path>> make_mount_point(const std::filesystem::path& path);

} // namespace containerize::runtime
