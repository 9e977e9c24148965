// Who could have made what is at a path. Launchers use this, so it has no dependencies.
#pragma once

#include "core/fd.h"

#include <functional>
#include <optional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

/// The directory that an absolute path lies in.
std::string parent_of(const std::string& path);

/// Whether it belongs to root, to this user, or to `owner`.
bool is_of(const struct stat& info, uid_t owner = geteuid());

/// Whether it is a directory of this user's, with all access for the user and none for others.
bool is_private_directory(const struct stat& info);

/// While one exists, what this process makes is for the user alone, with all access, whatever the umask was.
/// For processes with one thread.
class PrivateUmask {
public:
    PrivateUmask() : before_(umask(S_IRWXG | S_IRWXO)) {}
    ~PrivateUmask() { umask(before_); }
    PrivateUmask(const PrivateUmask&) = delete;
    PrivateUmask& operator=(const PrivateUmask&) = delete;

private:
    mode_t before_;
};

/// Opens such a directory. No descriptor if `path` is something else, or a link: where everybody may create
/// files, anybody can have taken the name.
Fd open_private_directory(const std::string& path);

/// Why `file` in `directory` may not be from whoever made an installation one of whose programs belongs to
/// `owner`; null if it is. Somebody else's installation is accepted, and so is one that a group maintains:
/// whoever may write to a directory can replace the programs in it, too. What counts is that nobody else has
/// put a file beside them.
const char* why_foreign(const struct stat& directory, const struct stat& file, uid_t owner);

/// A place by which another user can decide what is at a path.
struct Foreign {
    std::string path;     ///< a directory or a file on the way
    std::string why;      ///< "it belongs to another user", ...
    bool unknown = false; ///< its owner cannot be determined
};

/// The owner of no file: Linux uses this number for "no change".
inline constexpr uid_t unknown_owner = static_cast<uid_t>(-1);

/// A function like lstat(). The owner may be `unknown_owner`.
using Look = std::function<int(const char*, struct stat*)>;

struct OwnershipRules {
    uid_t owner = geteuid(); ///< trusted as much as the user
    /// What is there must not be replaced while something uses it. A sticky bit then does not help, because
    /// root cleans up such directories and anybody may come next; nor does it help if root gave a directory
    /// to a group.
    bool must_stay = false;
    /// Absolute, without links: whoever controls this path may control the other one, too.
    std::string beside = {};
    /// A directory that root has given to a group counts as root's.
    bool trusts_groups = true;
    /// The caller creates what is missing, and then examines its owner.
    bool may_be_missing = false;
    /// To be replaced in a process that cannot see the real owners.
    Look look = lstat;
};

/// The first directory or file, from the root down to `path`, by which another user could decide what is
/// there, or create it if it is missing. The path is absolute; links on the way are followed. Where root is
/// not mapped, as in some containers, another user's directories that are not in a sticky one count as
/// root's.
std::optional<Foreign> find_foreign(const std::string& path, const OwnershipRules& rules = {});

/// Whether another user has created a directory on the way to `path` where everybody may create one: it only
/// has the expected name.
bool has_foreign_owner(const std::string& path);

} // namespace containerize
