#include "image/listing.h"

#include "image/layers.h"

#include <set>

#include <sys/stat.h>

namespace containerize::image {

namespace {

std::unexpected<Error> damaged(const Reader& reader, const std::string& path, int error_number) {
    return fail_errno("cannot read '" + path + "' in the image", reader.name(), error_number);
}

class Listing {
public:
    explicit Listing(Reader& reader) : reader_(reader) {}

    Status add(Reference directory, const std::string& path, std::size_t depth) {
        if (depth > deepest_directory || !entered_.insert(directory).second)
            return damaged(reader_, path, EIO);
        const auto listing = reader_.directory(directory);
        if (!listing) return damaged(reader_, path, listing.error());
        for (const auto& entry : (*listing)->entries) {
            ListedEntry listed{.path = path.empty() ? "" : path + "/", .reference = entry.inode, .inode = {}};
            listed.path += (*listing)->name(entry);
            const auto inode = reader_.inode(entry.inode);
            if (!inode) return damaged(reader_, listed.path, inode.error());
            listed.inode = *inode;
            const bool is_directory = S_ISDIR(inode->mode);
            entries.push_back(listed);
            if (is_directory) TRY(add(listed.reference, listed.path, depth + 1));
        }
        return {};
    }

    std::vector<ListedEntry> entries;

private:
    Reader& reader_;
    std::set<Reference> entered_;
};

} // namespace

Result<std::vector<ListedEntry>> list_entries(Reader& reader) {
    Listing listing(reader);
    TRY(listing.add(reader.root(), {}, 0));
    return std::move(listing.entries);
}

Result<std::string> content_of(Reader& reader, const ListedEntry& file, std::uint64_t most) {
    if (!S_ISREG(file.inode.mode) || file.inode.size > most) return damaged(reader, file.path, EFBIG);
    std::string content;
    while (content.size() < file.inode.size) {
        std::vector<Slice> slices;
        const auto before = content.size();
        if (const auto read = reader.read(file.reference, before, file.inode.size - before, slices); !read)
            return damaged(reader, file.path, read.error());
        for (const auto& slice : slices)
            content.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
        if (content.size() == before) return damaged(reader, file.path, EIO);
    }
    return content;
}

} // namespace containerize::image
