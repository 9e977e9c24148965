#include "image/unpack.h"

#include "core/fd.h"
#include "core/read_write.h"
#include "image/tree_copier.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

/// Has the functions of Writer.
class DiskWriter {
public:
    explicit DiskWriter(const fs::path& root) : root_(root) {}

    Status add_directory(const std::string& path, const Attributes& attributes) {
        const auto target = root_ / path;
        std::error_code failed;
        if (fs::is_directory(fs::symlink_status(target, failed))) return {};
        TRY(remove_present(target));
        if (mkdir(target.c_str(), 0700) != 0) return fail_errno("cannot unpack a directory", target.string());
        made_.emplace_back(target, attributes);
        return {};
    }

    Status add_symlink(const std::string& path, const std::string& target, const Attributes& attributes) {
        const auto link = root_ / path;
        TRY(remove_present(link));
        if (symlink(target.c_str(), link.c_str()) != 0)
            return fail_errno("cannot unpack a link", link.string());
        return set_time(link, attributes);
    }

    Status add_hardlink(const std::string& path, const std::string& existing) {
        const auto name = root_ / path;
        TRY(remove_present(name));
        if (link((root_ / existing).c_str(), name.c_str()) == 0) return {};
        // The filesystem may have no hard links, or no more of this file.
        struct stat info {};
        std::error_code failed(errno, std::generic_category());
        if (failed == std::errc::operation_not_permitted || failed == std::errc::too_many_links)
            fs::copy_file(root_ / existing, name, failed);
        if (failed || stat((root_ / existing).c_str(), &info) != 0)
            return fail_errno("cannot unpack a hard link", name.string(), failed ? failed.value() : errno);
        const timespec times[] = {info.st_mtim, info.st_mtim};
        if (utimensat(AT_FDCWD, name.c_str(), times, 0) != 0)
            return fail_errno("cannot unpack a hard link", name.string());
        return {};
    }

    Status begin_file(const std::string& path, const Attributes& attributes) {
        file_path_ = root_ / path;
        attributes_ = attributes;
        TRY(remove_present(file_path_));
        file_.reset(open(file_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        return file_ ? Status() : fail_errno("cannot unpack a file", file_path_.string());
    }
    Status append(std::span<const std::byte> bytes) {
        if (write_all(file_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return {};
        return fail_errno("cannot unpack a file", file_path_.string());
    }
    Status end_file() {
        file_.reset();
        return set_attributes(file_path_, attributes_, 0200);
    }

    /// Last, because writing into a directory changes its time, and its mode may forbid writing.
    Status finish() {
        for (auto made = made_.rbegin(); made != made_.rend(); ++made)
            TRY(set_attributes(made->first, made->second, 0700));
        return {};
    }

private:
    static Status remove_present(const fs::path& target) {
        if (unlink(target.c_str()) == 0 || errno == ENOENT) return {};
        return fail_errno("cannot replace the existing file", target.string());
    }

    /// `needed`: the owner must be able to change it, whatever the image says.
    static Status set_attributes(const fs::path& target, const Attributes& attributes, mode_t needed) {
        // A filesystem without extended attributes loses them, as with every copy to it.
        for (const auto& [name, value] : attributes.xattrs)
            setxattr(target.c_str(), name.c_str(), value.data(), value.size(), 0);
        if (chmod(target.c_str(), (attributes.mode & 0777U) | needed) != 0)
            return fail_errno("cannot set the mode of a file", target.string());
        return set_time(target, attributes);
    }

    static Status set_time(const fs::path& target, const Attributes& attributes) {
        const std::array<timespec, 2> times = {timespec{attributes.mtime, 0}, timespec{attributes.mtime, 0}};
        if (utimensat(AT_FDCWD, target.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
            return fail_errno("cannot set the time of a file", target.string());
        return {};
    }

    const fs::path& root_;
    std::vector<std::pair<fs::path, Attributes>> made_; ///< directories
    Fd file_;
    fs::path file_path_;
    Attributes attributes_;
};

} // namespace

Status unpack(std::span<const fs::path> images, const fs::path& target) {
    auto layers = TRY(open_layers(images));
    DiskWriter writer(target);
    TRY(TreeCopier(*layers, writer, images.back().string(), {}).copy_rest());
    return writer.finish();
}

} // namespace containerize::image
