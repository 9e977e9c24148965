// Where an installation may be made, and the claim of one build on that place.
#pragma once

#include "install/janitor.h"
#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <set>
#include <string>

namespace containerize::install {

/// What an assembly's name begins with: there the files of a new installation are put together.
inline constexpr const char* own_leftovers = ".containerize-";
/// In an assembly whose files go into an empty directory: the names that they have there. While it is there,
/// what has these names is of a build that is not finished.
inline constexpr const char* names_to_come = ".names";
std::set<std::string> listed_names(const std::filesystem::path& assembly);
/// Whether a build of this user's made it, or of one who keeps the directory together with this user: in
/// others, anybody could name files of the user's for removal.
bool is_left_by_us(const std::filesystem::path& assembly);

/// The prefix as an absolute path without links, if an installation may be made there: it is absent, empty,
/// or (with `force`) an installation already.
Result<std::filesystem::path> check_prefix(const std::string& given, bool force);

/// Refuses a `file` below `prefix`: the build's own directory stands there while it runs, and hides it.
Status check_outside(const std::filesystem::path& file, const std::filesystem::path& prefix);

/// One build's right to a prefix: the directory exists, and no other build may touch it while this object
/// lives.
struct Claim {
    std::filesystem::path prefix;
    bool existed = false; ///< it was there before, empty or an installation
    bool locked = false;  ///< no other build of this node is there; false on a filesystem without locks
    Fd lock;
};
/// Directories that have to be made are given to the janitor.
Result<Claim> claim_prefix(const std::filesystem::path& prefix, Janitor& janitor);

} // namespace containerize::install
