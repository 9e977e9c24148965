// Directories of a cache or store, which several users may share. The functions that make one return the
// reason why it cannot be used; empty if it can.
#pragma once

#include "core/fd.h"
#include "core/filesystem.h"
#include "core/ownership.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace containerize {

/// Creates what is missing of the path.
std::string make_writable_directory(const fs::path& directory);

/// In a directory that everybody can write to, somebody else may have created ours.
std::string make_private_directory(const fs::path& directory);

/// Creates a directory that can be written by everybody who can write to its parent.
std::string make_shared_directory(const fs::path& directory);

/// Where another user could replace what is at `path`, which is in the cache or store `top` and may be
/// missing. Whoever controls the directories above `top` is not asked for: they were chosen with it.
std::optional<Foreign> find_foreign_below(const fs::path& top, const fs::path& path);

/// Gives our file or directory this group. Whether the group's bits of its mode are then for those for whom
/// they are meant: with an ACL, whose mask they are, they are so whatever the group.
bool give_group(const Fd& file, gid_t group);

} // namespace containerize
