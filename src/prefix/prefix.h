// Checks where an installation may be made, and locks that place for one build.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "prefix/cleanup_process.h"

#include <filesystem>
#include <set>
#include <string>

namespace containerize::prefix {

/// Name prefix of an assembly, the directory in which a new installation is put together.
inline constexpr const char* own_leftovers = ".containerize-";
/// A file in an assembly that is published into an empty directory. It lists the names to be created there;
/// while it exists, entries with these names belong to an unfinished build.
inline constexpr const char* names_to_come = ".names";
std::set<std::string> listed_names(const std::filesystem::path& assembly);
/// Whether the assembly was made by a build of this user, or of a user trusted with the parent directory. One
/// made by anybody else could list this user's files for removal.
bool is_left_by_us(const std::filesystem::path& assembly);

/// Refuses to change an existing directory (Fault::input) to which all users can write, or, for a root user
/// with power over others, one that belongs to another user. lock_prefix() asks again.
Status check_maintainer(const std::filesystem::path& prefix);

/// Returns the prefix as an absolute path without symlinks. Fails unless it is absent, empty or, with
/// `force`, an installation.
Result<std::filesystem::path> check_prefix(const std::string& given, bool force);

/// Refuses a `file` below `prefix`: during the build the new environment is mounted there and hides it.
Status check_outside(const std::filesystem::path& file, const std::filesystem::path& prefix);

/// A build's exclusive right to a prefix. The directory exists, and other builds must not touch it as long as
/// this object lives.
struct [[nodiscard]] PrefixLock {
    std::filesystem::path prefix;
    bool existed = false; ///< the directory existed before, empty or as an installation
    bool locked = false;  ///< no other build on this node uses it; false if the filesystem has no locks
    Fd lock;
};
/// Creates missing directories and registers them with the cleanup process. Fails if another build has the
/// lock, or if check_maintainer() refuses an existing directory.
Result<PrefixLock> lock_prefix(const std::filesystem::path& prefix, CleanupProcess& cleanup);

/// Refuses (Fault::input) a directory whose installation check_maintainer() would not let this user change,
/// though lock_prefix() has just made it: on some network filesystems, root's files belong to another user.
Status check_later_changes(const PrefixLock& lock);

} // namespace containerize::prefix
