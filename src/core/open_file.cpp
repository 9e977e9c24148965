#include "core/open_file.h"

#include <cerrno>

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace containerize {

Result<Fd> open_regular(const std::filesystem::path& path, int flags) {
    constexpr const char* what = "cannot read the file";
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0) return fail_errno(what, path.string());
    if (S_ISDIR(info.st_mode)) return fail_errno(what, path.string(), EISDIR);
    const bool is_null = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
    if (!S_ISREG(info.st_mode) && !is_null)
        return fail({.what = what, .why = "it is not a regular file", .where = path.string()});
    // Reads may block: a filesystem may have the content on a tape.
    if (fcntl(file.get(), F_SETFL, 0) != 0) return fail_errno(what, path.string());
    return file;
}

bool is_named(const Fd& file, const std::filesystem::path& name, int directory) {
    struct stat opened {};
    struct stat named {};
    return fstat(file.get(), &opened) == 0 &&
           fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

} // namespace containerize
