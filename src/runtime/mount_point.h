// A directory to mount on, at a path where the disk has none: an installation that was moved needs its first
// path.
#pragma once

#include "util/error.h"

#include <filesystem>

namespace containerize::runtime {

/// Makes `path` exist as a directory in this mount namespace, which is ours.
///
/// Where the user may write into the nearest directory that exists, the missing ones are made there, and
/// stay: other sessions, also those of other nodes, mount on them too, and a removed mount point takes the
/// mount away. (Covering such a directory instead would swallow what programs write into it.) Elsewhere that
/// directory is covered by a read-only one in memory, with everything that it holds bound into it, and the
/// missing ones.
Status make_mount_point(const std::filesystem::path& path);

/// Whether that means a new root, by which programs that run already lose the names of their working
/// directories.
bool needs_new_root(const std::filesystem::path& path);

} // namespace containerize::runtime
