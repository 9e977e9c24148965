#include "image/layers_view.h"

#include <sys/stat.h>

namespace containerize::image {

namespace {

/// The form of paths for Layers::find().
std::string_view relative(std::string_view path) {
    return path.starts_with('/') ? path.substr(1) : path;
}

} // namespace

mode_t LayersView::mode_of(const std::string& path) const {
    const auto reference = layers_.find(relative(path));
    const auto inode = reference ? layers_.inode(*reference) : std::unexpected(reference.error());
    return inode ? inode->mode : 0;
}

std::string LayersView::target_of(const std::string& link) const {
    const auto reference = layers_.find(relative(link));
    return reference ? layers_.read_link(*reference).value_or("") : "";
}

std::vector<std::string> LayersView::names_in(const std::string& directory) const {
    std::vector<std::string> names;
    const auto reference = layers_.find(relative(directory));
    const auto listing = reference ? layers_.directory(*reference) : std::unexpected(reference.error());
    if (!listing) return names;
    for (const auto& entry : (*listing)->entries)
        names.emplace_back((*listing)->name(entry));
    return names;
}

std::string LayersView::bytes_of(const std::string& file, std::uint64_t offset, std::size_t size) const {
    const auto reference = layers_.find(relative(file));
    if (!reference) return {};
    constexpr std::size_t piece = std::size_t{1} << 20U; // `size` may be a limit, far above the file's
    std::string bytes;
    while (bytes.size() < size) {
        std::vector<image::Slice> slices;
        const auto before = bytes.size();
        if (!layers_.read(*reference, offset + before, std::min(piece, size - before), slices)) break;
        for (const auto& slice : slices)
            bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
        if (bytes.size() == before) break;
    }
    return bytes;
}

} // namespace containerize::image
