// Who could have made what lies at a path. The launcher uses it, so nothing must be linked for it.
#pragma once

#include "util/fd.h"

#include <functional>
#include <optional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

/// Whether it belongs to root, to this user, or to `owner`.
bool is_of(const struct stat& info, uid_t owner = geteuid());

/// Whether it is a directory of this user's that nobody else can even look into.
bool is_private_directory(const struct stat& info);

/// That directory, open; nothing if `path` is none such, or a link: where all may make files, anybody can
/// have made one of that name.
Fd open_private_directory(const std::string& path);

/// Why `file`, in `directory`, need not come from whoever made an installation of which a program belongs to
/// `owner`; null if it does. Somebody else's installation is as good as one's own, and so is one that a group
/// keeps: who may write to a directory can exchange the programs below it as well. What counts is that nobody
/// else has put something beside them.
const char* why_foreign(const struct stat& directory, const struct stat& file, uid_t owner);

/// By what another user can decide a path.
struct Foreign {
    std::string path; ///< a directory or a file on the way
    std::string why;  ///< "it belongs to another user", ...
};

/// As lstat().
using Look = std::function<int(const char*, struct stat*)>;

struct OwnershipRules {
    uid_t owner = geteuid(); ///< whose work is as good as the user's own
    /// What is there must not be exchanged as long as something uses it. Then a sticky bit does not help,
    /// since root cleans up such places and anybody may come next; nor that root has given a directory to a
    /// group.
    bool must_stay = false;
    /// Absolute, without links: who decides this path may as well decide the other one.
    std::string beside = {};
    /// Another one for a process that cannot see who other users are.
    Look look = lstat;
};

/// The first directory or file, from the root down to `path`, by which another user could decide what is
/// there, or make it where it is missing. The path is absolute; links on the way are followed.
std::optional<Foreign> find_foreign(const std::string& path, const OwnershipRules& rules = {});

/// Whether somebody else has made a directory on the way to `path` in a place where everybody may make one:
/// it only has the name that is looked for.
bool is_planted(const std::string& path);

} // namespace containerize
