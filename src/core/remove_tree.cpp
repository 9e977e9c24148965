#include "core/filesystem.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace containerize {

namespace {

struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

/// Opens the directory `name` in `parent`, and gives its owner access first if necessary. Null on failure,
/// with errno.
Directory open_writable(int parent, const char* name) {
    // O_PATH needs no permission on the directory itself, and pins it: what is chmod'ed below is what is read
    // afterwards, whatever its name leads to by then.
    const Fd pinned(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!pinned) return nullptr;
    struct stat info {};
    if (fstat(pinned.get(), &info) != 0) return nullptr;
    if ((info.st_mode & S_IRWXU) != S_IRWXU && info.st_uid == geteuid()) {
        // fchmod() refuses O_PATH descriptors; chmod() on the link in /proc does not.
        char link[64];
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", pinned.get());
        if (chmod(link, (info.st_mode & 07777U) | S_IRWXU) != 0) return nullptr;
    }
    Fd readable(openat(pinned.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!readable) return nullptr;
    Directory directory(fdopendir(readable.get()));
    if (directory) [[maybe_unused]]
        const int owned = readable.release();
    return directory;
}

/// The number of the mount that a descriptor is in. Empty without /proc.
std::string mount_of(int descriptor) {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(descriptor));
    for (std::string key, value; info >> key >> value;)
        if (key == "mnt_id:") return value;
    return {};
}

class Remover {
public:
    Remover(int parent, dev_t device) : mount_(mount_of(parent)), device_(device) {}

    void remove(int parent, const char* name, const fs::path& path) {
        struct statx info {};
        if (statx(parent, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &info) != 0) return note(path, errno);
        if (!S_ISDIR(info.stx_mode)) {
            if (unlinkat(parent, name, 0) != 0) note(path, errno);
            return;
        }
        if (is_mount(parent, name, info)) return note(path, EBUSY);
        {
            const Directory directory = open_writable(parent, name);
            if (!directory) return note(path, errno);
            remove_entries(directory.get(), path);
        }
        if (unlinkat(parent, name, AT_REMOVEDIR) != 0) note(path, errno);
    }

    /// The first failure, if any.
    Status status() && { return std::move(status_); }

private:
    // A bind mount has the device of its source. An attribute reveals it from Linux 5.8 on.
    [[nodiscard]] bool is_mount(int parent, const char* name, const struct statx& info) const {
        if (makedev(info.stx_dev_major, info.stx_dev_minor) != device_) return true;
        if ((info.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
            return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
        const Fd directory(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!directory) return false; // the caller sees why
        const auto mount = mount_of(directory.get());
        return mount.empty() || mount != mount_;
    }

    void remove_entries(DIR* directory, const fs::path& path) {
        while (const dirent* entry = readdir(directory)) {
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") remove(dirfd(directory), entry->d_name, path / name);
        }
    }

    // What another process has removed meanwhile is no failure.
    void note(const fs::path& path, int error_number) {
        if (error_number != ENOENT && status_)
            status_ = fail_errno("cannot remove", path.string(), error_number);
    }

    std::string mount_; ///< of everything that is removed
    dev_t device_;
    Status status_;
};

} // namespace

Status remove_tree(const fs::path& path) {
    const auto target = path.has_filename() ? path : path.parent_path();
    const auto parent_path = target.has_parent_path() ? target.parent_path() : fs::path(".");
    const auto name = target.filename();
    const Fd parent(open(parent_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    if (!parent || fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return {};
        return fail_errno("cannot remove", path.string());
    }
    Remover remover(parent.get(), info.st_dev);
    remover.remove(parent.get(), name.c_str(), target);
    return std::move(remover).status();
}

} // namespace containerize
