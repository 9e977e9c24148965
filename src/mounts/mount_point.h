// Mount points where the disk has no directory.
#pragma once

#include "core/error.h"
#include "core/ownership.h"

#include <filesystem>
#include <span>
#include <string>

namespace containerize::mounts {

/// Makes `path` exist as a directory in this mount namespace, which is private: an installation that was
/// moved is also shown at its original path.
///
/// If the user may write to the nearest existing directory, the missing ones are created on disk and stay:
/// other sessions, also on other nodes, mount on them too, and a removed mount point takes the mount away.
/// (Covering such a directory would instead swallow what programs write to it.) Otherwise that directory is
/// covered by a read-only one in memory, with all its entries bound into it and the missing directories
/// added.
///
/// Whoever can remove a mount point decides what programs find at its path. If by `rules` that is somebody
/// else, everything from there on is made in memory; that fails where the user may write, as in /tmp.
Status make_mount_point(const std::filesystem::path& path, const OwnershipRules& rules);

/// The rules for another path at which the installation at `prefix` is shown: whoever controls the
/// installation may control that path.
OwnershipRules rules_of_other_place(const std::string& prefix, Look look);
/// The error for a path that others could control.
std::unexpected<Error> no_safe_place(const std::filesystem::path& path, const Foreign& foreign);

/// The nearest existing directory above `path`.
std::filesystem::path nearest_directory(const std::filesystem::path& path);

struct MissingPath {
    std::string path; ///< absolute
    bool directory = true;
};
/// Makes all of them exist in the tree at `root`, always by covering: nothing is written to disk. Missing
/// parent directories are added; none of `missing` may exist.
Status cover_missing(const std::filesystem::path& root, std::span<const MissingPath> missing);

/// Makes `new_root`, a mount point, the root of this mount namespace and detaches the old one.
Status change_root(const std::filesystem::path& new_root);
/// Whether make_mount_point() would replace the root directory. Programs that are running would then lose the
/// names of their working directories.
bool needs_new_root(const std::filesystem::path& path);

} // namespace containerize::mounts
