// An image in which every field can be wrong: everything in it is read, in pieces.
#include "image/reader.h"

#include "image_input.h"

#include <vector>

using namespace containerize;

namespace {

constexpr std::size_t most_visits = 300;
constexpr std::size_t piece = 100'000;

void read_file(image::Reader& reader, image::Reference reference, const image::Inode& inode) {
    for (const std::uint64_t offset :
         {std::uint64_t{0}, inode.size / 2, inode.size - std::min<std::uint64_t>(inode.size, 10)}) {
        std::vector<image::Slice> slices;
        if (!reader.read(reference, offset, piece, slices)) continue;
        std::uint64_t size = 0;
        for (const auto& slice : slices)
            size += slice.bytes.size();
        fuzz::require(size == std::min<std::uint64_t>(piece, inode.size - offset));
    }
    [[maybe_unused]] const auto blocks = reader.blocks_of(reference);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto reader = image::Reader::open(fuzz::file_of(fuzz::image_of(fuzz::text_of(data, size))), "image");
    if (!reader) return 0;
    [[maybe_unused]] const bool shown = (*reader)->has_xattrs_other_than("user.overlay.");
    std::vector<image::Reference> pending = {(*reader)->root()};
    for (std::size_t visits = 0; !pending.empty() && visits < most_visits; ++visits) {
        const auto reference = pending.back();
        pending.pop_back();
        const auto inode = (*reader)->inode(reference);
        if (!inode) continue;
        read_file(**reader, reference, *inode);
        [[maybe_unused]] const auto target = (*reader)->read_link(reference);
        [[maybe_unused]] const auto xattrs = (*reader)->xattrs(inode->xattrs);
        const auto listing = (*reader)->directory(reference);
        if (!listing) continue;
        for (const auto& entry : (*listing)->entries) {
            fuzz::require((*reader)->lookup(reference, (*listing)->name(entry)) == entry.inode);
            if (pending.size() < most_visits) pending.push_back(entry.inode);
        }
    }
    return 0;
}
