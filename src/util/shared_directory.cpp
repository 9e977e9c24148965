#include "util/shared_directory.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize {

namespace {

std::string why_not_writable(const fs::path& directory) {
    return access(directory.c_str(), W_OK | X_OK) == 0 ? "" : std::strerror(errno);
}

/// Copies the parent's mode and group, and sets the sticky bit: users must not rename others' files.
std::string make_as_above(const fs::path& directory, const struct stat& above) {
    // Created under a temporary name: nobody may see it before it has its final mode.
    std::string name = (directory.parent_path() / ("." + directory.filename().string() + "-XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) return std::strerror(errno);
    const Fd made(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    mode_t mode = (above.st_mode & 03777U) | S_ISVTX;
    if (!made) return std::strerror(errno);
    // If the group cannot be copied, its write access must not go to another group.
    if (!give_group(made, above.st_gid) && (mode & S_IWOTH) == 0) mode &= ~(S_IWGRP | S_ISGID);
    if (fchmod(made.get(), mode) == 0 && rename(name.c_str(), directory.c_str()) == 0) return {};
    const auto why = std::strerror(errno);
    rmdir(name.c_str());
    return fs::exists(fs::symlink_status(directory)) ? "" : why; // another build created it first
}

} // namespace

std::string make_writable_directory(const fs::path& directory) {
    const auto made = make_directories(directory);
    return made ? why_not_writable(directory) : made.error().why;
}

std::string make_private_directory(const fs::path& directory) {
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
    struct stat info {};
    if (lstat(directory.c_str(), &info) != 0) return std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return "it is not a directory";
    if (info.st_uid != geteuid()) return "it belongs to another user";
    if ((info.st_mode & 077U) != 0) return "other users can access it";
    return why_not_writable(directory);
}

std::string make_shared_directory(const fs::path& directory) {
    struct stat info {};
    struct stat above {};
    if (lstat(directory.c_str(), &info) != 0) {
        if (auto why = make_writable_directory(directory.parent_path()); !why.empty()) return why;
        if (stat(directory.parent_path().c_str(), &above) != 0) return std::strerror(errno);
        const bool shared = (above.st_mode & (S_IWGRP | S_IWOTH)) != 0;
        if (!shared) return make_writable_directory(directory);
        if (auto why = make_as_above(directory, above); !why.empty()) return why;
        if (lstat(directory.c_str(), &info) != 0) return std::strerror(errno);
    }
    if (S_ISLNK(info.st_mode) && info.st_uid != geteuid() && info.st_uid != 0)
        return "it is a link that belongs to another user";
    return why_not_writable(directory);
}

std::optional<Foreign> find_foreign_below(const fs::path& top, const fs::path& path) {
    std::error_code failed;
    const auto real = fs::weakly_canonical(top, failed);
    return find_foreign(path.string(), {.beside = failed ? "" : real.parent_path().string(),
                                        .trusts_groups = false, // any of the group could be the attacker
                                        .may_be_missing = true});
}

bool give_group(const Fd& file, gid_t group) {
    struct stat info {};
    if (fstat(file.get(), &info) != 0) return false;
    if (info.st_gid == group || fchown(file.get(), static_cast<uid_t>(-1), group) == 0) return true;
    return fgetxattr(file.get(), "system.posix_acl_access", nullptr, 0) > 0;
}

} // namespace containerize
