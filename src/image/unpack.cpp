#include "image/unpack.h"

#include "core/fd.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "image/layers.h"
#include "image/walk.h"

#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

class Unpacker {
public:
    Unpacker(Layers& layers, const fs::path& image) : layers_(layers), walk_(layers), image_(image) {}

    /// Unpacks what is in a directory into an existing one.
    Status content_of(Reference reference, const fs::path& target) {
        const auto level = walk_.enter(reference);
        if (!level) return damaged(level.error());
        const Directory& listing = level->listing();
        for (const auto& entry : listing.entries) {
            if (interrupted()) return fail_interrupted();
            if (auto done = this->entry(entry.inode, target / listing.name(entry)); !done) return done;
        }
        return {};
    }

private:
    Status entry(Reference reference, const fs::path& target) {
        const auto inode = layers_.inode(reference);
        if (!inode) return damaged(inode.error());
        if (S_ISDIR(inode->mode)) return directory(reference, *inode, target);
        if (unlink(target.c_str()) != 0 && errno != ENOENT)
            return fail_errno("cannot unpack over what is there", target.string());
        if (S_ISLNK(inode->mode)) {
            const auto text = layers_.read_link(reference);
            if (!text) return damaged(text.error());
            if (symlink(text->c_str(), target.c_str()) != 0)
                return fail_errno("cannot unpack a link", target.string());
            return set_time(*inode, target);
        }
        if (!S_ISREG(inode->mode)) return {}; // no image of ours has any other
        if (inode->nlink > 1) {
            const auto [first, is_new] = names_.emplace(inode->number, target);
            if (!is_new) {
                if (link(first->second.c_str(), target.c_str()) == 0) return {};
                if (errno != EPERM && errno != EMLINK)
                    return fail_errno("cannot unpack a hard link", target.string());
            }
        }
        if (auto done = content(reference, inode->size, target); !done) return done;
        return set_attributes(reference, *inode, target);
    }

    Status directory(Reference reference, const Inode& inode, const fs::path& target) {
        std::error_code failed;
        if (fs::is_directory(fs::symlink_status(target, failed))) return content_of(reference, target);
        if (unlink(target.c_str()) != 0 && errno != ENOENT)
            return fail_errno("cannot unpack over what is there", target.string());
        if (mkdir(target.c_str(), 0700) != 0) return fail_errno("cannot unpack a directory", target.string());
        if (auto done = content_of(reference, target); !done) return done;
        // Last, because writing into it changes its time, and its mode may forbid writing.
        return set_attributes(reference, inode, target);
    }

    Status content(Reference reference, std::uint64_t size, const fs::path& target) {
        const Fd file(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!file) return fail_errno("cannot unpack a file", target.string());
        constexpr std::size_t piece = 1U << 20U;
        for (std::uint64_t offset = 0; offset < size;) {
            std::vector<Slice> slices;
            if (const auto got = layers_.read(reference, offset, piece, slices); !got)
                return damaged(got.error());
            const auto before = offset;
            for (const auto& slice : slices) {
                const std::string_view bytes(reinterpret_cast<const char*>(slice.bytes.data()),
                                             slice.bytes.size());
                if (!write_all(file.get(), bytes)) return fail_errno("cannot unpack a file", target.string());
                offset += slice.bytes.size();
            }
            if (offset == before) return damaged(EIO);
        }
        return {};
    }

    Status set_attributes(Reference reference, const Inode& inode, const fs::path& target) const {
        if (layers_.has_xattrs()) {
            const auto xattrs = layers_.xattrs(reference);
            if (!xattrs) return damaged(xattrs.error());
            // A filesystem without extended attributes loses them, as with every copy to it.
            for (const auto& [name, value] : *xattrs)
                setxattr(target.c_str(), name.c_str(), value.data(), value.size(), 0);
        }
        // The owner must be able to change it, whatever the image says.
        const mode_t mode = (inode.mode & 0777U) | (S_ISDIR(inode.mode) ? 0700U : 0200U);
        if (chmod(target.c_str(), mode) != 0)
            return fail_errno("cannot set the mode of a file", target.string());
        return set_time(inode, target);
    }

    static Status set_time(const Inode& inode, const fs::path& target) {
        const std::array<timespec, 2> times = {timespec{inode.mtime, 0}, timespec{inode.mtime, 0}};
        if (utimensat(AT_FDCWD, target.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
            return fail_errno("cannot set the time of a file", target.string());
        return {};
    }

    Status damaged(int error_number) const {
        return fail_errno("cannot read the image", image_.string(), error_number);
    }

    Layers& layers_;
    Walk walk_;
    const fs::path& image_;
    std::map<std::uint64_t, fs::path> names_; ///< of hard-linked files: the first name, by inode number
};

} // namespace

Status unpack(std::span<const fs::path> images, const fs::path& target) {
    auto layers = open_layers(images);
    if (!layers) return fail(std::move(layers.error()));
    return Unpacker(**layers, images.back()).content_of((*layers)->root(), target);
}

} // namespace containerize::image
