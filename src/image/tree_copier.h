// Copies the tree that layers show, entry by entry.
#pragma once

#include "core/interrupt.h"
#include "image/layers.h"
#include "image/walk.h"
#include "image/writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace containerize::image {

/// Adds a file without its content being read; false if that must be copied.
using LinkFile = std::function<Result<bool>(Reference, const std::string& path, const Attributes&)>;

/// `Target` is Writer, or has the same functions.
template<class Target>
class TreeCopier {
public:
    /// `where` is named if the layers cannot be read; if it is empty, the entry is. `link` may be empty.
    TreeCopier(Layers& layers, Target& target, std::string where, PackProgress progress, LinkFile link = {})
        : layers_(layers), walk_(layers), target_(target), where_(std::move(where)),
          progress_(std::move(progress)), link_(std::move(link)) {}

    Status copy_first(Reference file, const std::string& path) {
        auto copied = entry(file, path);
        copied_first_.insert(path);
        return copied;
    }
    /// Copies what copy_first() has not, each directory sorted by the bytes of the names.
    Status copy_rest() { return entry(layers_.root(), ""); }

private:
    Status entry(Reference reference, const std::string& path) {
        if (copied_first_.contains(path)) return {};
        const auto inode = layers_.inode(reference);
        if (!inode) return damaged(path, inode.error());
        if (S_ISREG(inode->mode) && inode->nlink > 1) {
            const auto [first, is_new] = names_.emplace(inode->number, path);
            if (!is_new) return target_.add_hardlink(path, first->second);
        }
        const auto attributes = attributes_of(reference, *inode);
        if (!attributes) return damaged(path, attributes.error());
        if (S_ISDIR(inode->mode)) return directory(reference, path, *attributes);
        if (S_ISLNK(inode->mode)) {
            const auto target = layers_.read_link(reference);
            if (!target) return damaged(path, target.error());
            return target_.add_symlink(path, *target, *attributes);
        }
        if (!S_ISREG(inode->mode)) return {}; // no image of ours has any other
        if (link_ && TRY(link_(reference, path, *attributes))) {
            advance(inode->size);
            return {};
        }
        TRY(target_.begin_file(path, *attributes));
        TRY(content(reference, inode->size, path));
        return target_.end_file();
    }

    Status directory(Reference reference, const std::string& path, const Attributes& attributes) {
        TRY(target_.add_directory(path, attributes));
        const auto level = walk_.enter(reference);
        if (!level) return damaged(path, level.error());
        const Directory& listing = level->listing();
        std::vector<std::pair<std::string, Reference>> entries;
        for (const auto& one : listing.entries)
            entries.emplace_back(listing.name(one), one.inode);
        std::ranges::sort(entries);
        for (const auto& [name, child] : entries) {
            if (interrupted()) return fail_interrupted();
            TRY(entry(child, path.empty() ? name : path + "/" + name));
        }
        return {};
    }

    Status content(Reference reference, std::uint64_t size, const std::string& path) {
        constexpr std::size_t piece = 1U << 20U;
        for (std::uint64_t offset = 0; offset < size;) {
            std::vector<Slice> slices;
            if (const auto got = layers_.read(reference, offset, piece, slices); !got)
                return damaged(path, got.error());
            const auto before = offset;
            for (const auto& slice : slices) {
                TRY(target_.append(slice.bytes));
                offset += slice.bytes.size();
            }
            if (offset == before) return damaged(path, EIO);
            advance(offset - before);
        }
        return {};
    }

    void advance(std::uint64_t bytes) {
        done_ += bytes;
        if (progress_) progress_(done_);
    }

    std::expected<Attributes, int> attributes_of(Reference reference, const Inode& inode) const {
        Attributes attributes{.mode = inode.mode & 07777U, .mtime = inode.mtime};
        if (!layers_.has_xattrs()) return attributes;
        const auto xattrs = TRY(layers_.xattrs(reference));
        for (const auto& [name, value] : xattrs)
            attributes.xattrs.emplace_back(name, value);
        std::ranges::sort(attributes.xattrs);
        return attributes;
    }

    Status damaged(const std::string& path, int error_number) const {
        return fail_errno("cannot read the image", where_.empty() ? path : where_, error_number);
    }

    Layers& layers_;
    Walk walk_;
    Target& target_;
    std::string where_;
    PackProgress progress_;
    LinkFile link_;
    std::map<std::uint64_t, std::string> names_; ///< of hard-linked files: the first name, by inode number
    std::set<std::string> copied_first_;
    std::uint64_t done_ = 0;
};

} // namespace containerize::image
