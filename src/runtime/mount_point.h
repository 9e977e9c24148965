// Paths to mount on, where the disk has none.
#pragma once

#include "util/error.h"
#include "util/ownership.h"

#include <filesystem>
#include <span>
#include <string>

namespace containerize::runtime {

/// Makes `path` exist as a directory in this mount namespace, which is ours: an installation that was moved
/// needs its first path.
///
/// Where the user may write into the nearest directory that exists, the missing ones are made there, and
/// stay: other sessions, also those of other nodes, mount on them too, and a removed mount point takes the
/// mount away. (Covering such a directory instead would swallow what programs write into it.) Elsewhere that
/// directory is covered by a read-only one in memory, with everything that it holds bound into it, and the
/// missing ones.
///
/// Whoever can remove a mount point decides what programs find at its path. Where `rules` say that this is
/// somebody else, all from there on is made in memory; that fails where the user may write, as in /tmp.
Status make_mount_point(const std::filesystem::path& path, const OwnershipRules& rules);

/// The rules for whatever path an installation at `prefix` is shown at beside its own: there may decide who
/// decides the installation.
OwnershipRules rules_of_other_place(const std::string& prefix, Look look);
/// The failure where such a path could be decided by others.
std::unexpected<Error> no_safe_place(const std::filesystem::path& path, const Foreign& foreign);

/// The directory that exists nearest above `path`.
std::filesystem::path nearest_directory(const std::filesystem::path& path);

struct MissingPath {
    std::string path; ///< absolute
    bool directory = true;
};
/// Makes all of them exist in the tree at `root`, always by covering: nothing is written to the disk.
/// Directories on the way are made, too; none of `missing` may exist.
Status cover_missing(const std::filesystem::path& root, std::span<const MissingPath> missing);

/// Makes the tree at `new_root`, a mount point, the root of this mount namespace and lets go of the old one.
Status change_root(const std::filesystem::path& new_root);
/// Whether that means a new root, by which programs that run already lose the names of their working
/// directories.
bool needs_new_root(const std::filesystem::path& path);

} // namespace containerize::runtime
