#include "image/merge.h"

#include "core/interrupt.h"
#include "image/walk.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace containerize::image {

namespace {

class Merger {
public:
    Merger(Layers& layers, Writer& writer, const PackProgress& progress)
        : layers_(layers), walk_(layers), writer_(writer), progress_(progress) {}

    Status add_directory(Reference reference, const std::string& path) {
        const auto inode = layers_.inode(reference);
        if (!inode) return damaged(path, inode.error());
        auto attributes = attributes_of(reference, *inode);
        if (!attributes) return damaged(path, attributes.error());
        if (auto added = writer_.add_directory(path, *attributes); !added) return added;
        const auto level = walk_.enter(reference);
        if (!level) return damaged(path, level.error());
        const Directory& listing = level->listing();
        std::vector<std::pair<std::string, Reference>> entries;
        for (const auto& entry : listing.entries)
            entries.emplace_back(listing.name(entry), entry.inode);
        std::ranges::sort(entries);
        for (const auto& [name, child] : entries) {
            if (interrupted()) return fail_interrupted();
            if (auto added = add(child, path.empty() ? name : path + "/" + name); !added) return added;
        }
        return {};
    }

    Status add_first(const RecordedFile& file) {
        auto added = add(file.reference, file.path);
        added_first_.insert(file.path);
        return added;
    }

private:
    Status add(Reference reference, const std::string& path) {
        if (added_first_.contains(path)) return {};
        const auto inode = layers_.inode(reference);
        if (!inode) return damaged(path, inode.error());
        if (S_ISDIR(inode->mode)) return add_directory(reference, path);
        if (S_ISREG(inode->mode) && inode->nlink > 1) {
            const auto [first, is_new] = names_.emplace(inode->number, path);
            if (!is_new) return writer_.add_hardlink(path, first->second);
        }
        const auto attributes = attributes_of(reference, *inode);
        if (!attributes) return damaged(path, attributes.error());
        if (S_ISLNK(inode->mode)) {
            const auto target = layers_.read_link(reference);
            if (!target) return damaged(path, target.error());
            return writer_.add_symlink(path, *target, *attributes);
        }
        if (!S_ISREG(inode->mode)) return {}; // no image of ours has any other
        if (auto begun = writer_.begin_file(path, *attributes); !begun) return begun;
        if (auto added = add_content(reference, inode->size, path); !added) return added;
        return writer_.end_file();
    }

    Status add_content(Reference reference, std::uint64_t size, const std::string& path) {
        constexpr std::size_t piece = 1U << 20U;
        for (std::uint64_t offset = 0; offset < size;) {
            std::vector<Slice> slices;
            if (const auto got = layers_.read(reference, offset, piece, slices); !got)
                return damaged(path, got.error());
            const auto before = offset;
            for (const auto& slice : slices) {
                if (auto added = writer_.append(slice.bytes); !added) return added;
                offset += slice.bytes.size();
            }
            if (offset == before) return damaged(path, EIO);
            done_ += offset - before;
            if (progress_) progress_(done_);
        }
        return {};
    }

    std::expected<Attributes, int> attributes_of(Reference reference, const Inode& inode) const {
        Attributes attributes{.mode = inode.mode & 07777U, .mtime = inode.mtime, .xattrs = {}};
        if (!layers_.has_xattrs()) return attributes;
        const auto xattrs = layers_.xattrs(reference);
        if (!xattrs) return std::unexpected(xattrs.error());
        for (const auto& [name, value] : *xattrs)
            attributes.xattrs.emplace_back(name, value);
        std::ranges::sort(attributes.xattrs);
        return attributes;
    }

    static Status damaged(const std::string& path, int error_number) {
        return fail_errno("cannot read the images", path, error_number);
    }

    Layers& layers_;
    Walk walk_;
    Writer& writer_;
    const PackProgress& progress_;
    std::map<std::uint64_t, std::string> names_; ///< of hard-linked files: the first name, by inode number
    std::set<std::string> added_first_;
    std::uint64_t done_ = 0;
};

} // namespace

Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress,
                                const std::vector<RecordedFile>& first) {
    auto writer = Writer::create(image, options);
    if (!writer) return fail(std::move(writer.error()));
    Merger merger(layers, *writer, progress);
    for (const auto& file : first)
        if (auto added = merger.add_first(file); !added) return fail(std::move(added.error()));
    if (auto added = merger.add_directory(layers.root(), ""); !added) return fail(std::move(added.error()));
    return writer->finish();
}

} // namespace containerize::image
