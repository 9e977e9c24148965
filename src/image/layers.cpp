#include "image/layers.h"

#include <algorithm>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace containerize::image {

namespace {

constexpr std::size_t listing_cache_bytes = 8U << 20U;

void append(Directory& directory, Directory::Entry entry, std::string_view name) {
    entry.name_start = static_cast<std::uint32_t>(directory.names.size());
    directory.names.append(name);
    directory.entries.push_back(entry);
}

bool is_opaque(const std::vector<Xattr>& xattrs) {
    return std::ranges::any_of(xattrs,
                               [](const Xattr& one) { return one.name == opaque_xattr && one.value == "y"; });
}

} // namespace

Layers::Layers(const Instruments& instruments)
    : listings_(listing_cache_bytes), statistics_(instruments.statistics) {}

Result<std::unique_ptr<Layers>> Layers::open(std::vector<ImageFile> images, const Instruments& instruments) {
    auto layers = std::unique_ptr<Layers>(new Layers(instruments));
    if (images.empty() || images.size() > most_images)
        return fail({.what = "cannot merge " + std::to_string(images.size()) + " images",
                     .why = "the limit is " + std::to_string(most_images),
                     .hint = "Merge them into one image with `containerize squash`."});
    const std::filesystem::path uppermost = images.back().path;
    layers->first_numbers_.push_back(0);
    Directories roots;
    for (auto& image : images) {
        auto reader =
            TRY(Reader::open(std::move(image.file), image.path, images.size(), image.offset, instruments));
        layers->first_numbers_.push_back(layers->first_numbers_.back() + reader->inode_count());
        roots.insert(roots.begin(), in_layer(layers->readers_.size(), reader->root()));
        layers->readers_.push_back(std::move(reader));
    }
    layers->root_ = roots.front();
    // Overlayfs's own attributes do not count: without any others, none is ever asked for.
    layers->has_xattrs_ = std::ranges::any_of(
        layers->readers_, [](const auto& reader) { return reader->has_xattrs_other_than(overlay_xattrs); });
    if (auto done = layers->merge(roots, 0); !done)
        return fail_errno("cannot read the image", uppermost.string(), done.error());
    return layers;
}

void Layers::prefetch(const std::vector<Profile>& profiles, const PrefetchOptions& options) {
    std::vector<Prefetch::Part> parts;
    std::vector<Reader*> readers;
    for (std::size_t i = 0; i < std::min(profiles.size(), readers_.size()); ++i) {
        auto blocks = readers_[i]->possible(profiles[i].blocks);
        if (blocks.empty()) continue;
        parts.push_back(readers_[i]->part(std::move(blocks)));
        readers.push_back(readers_[i].get());
    }
    if (parts.empty()) return;
    prefetch_ = std::make_unique<Prefetch>(std::move(parts), options, statistics_);
    for (std::size_t i = 0; i < readers.size(); ++i)
        readers[i]->use(*prefetch_, i);
    prefetch_->start();
}

std::uint64_t Layers::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& reader : readers_)
        sum += reader->source().size();
    return sum;
}

bool Layers::is_whiteout(Reference reference, std::uint8_t type) const {
    if (type != DT_CHR) return false;
    const auto inode = reader(reference).inode(within(reference));
    return inode && inode->rdev == 0;
}

std::expected<void, int> Layers::merge(const Directories& directories, std::size_t depth) {
    // Only directories that several images have are merged.
    if (directories.size() < 2) return {};
    if (depth > deepest_directory) return std::unexpected(EIO);
    merged_.emplace(directories.front(), directories);
    // Kept, so that no listing is read again for each of its names.
    std::vector<LoadingCache<Directory>::Pointer> listings;
    for (const Reference directory : directories) {
        auto listing = TRY(reader(directory).directory(within(directory)));
        listings.push_back(std::move(listing));
    }
    for (std::size_t i = 0; i < directories.size() && image_of(directories[i]) != 0; ++i) {
        for (const auto& entry : listings[i]->entries) {
            if (entry.type != DT_DIR) continue;
            const auto below = TRY(subdirectories(directories, listings, listings[i]->name(entry)));
            if (below.empty() || merged_.contains(below.front())) continue;
            TRY(merge(below, depth + 1));
        }
    }
    return {};
}

std::expected<Layers::Directories, int>
Layers::subdirectories(const Directories& directories,
                       const std::vector<LoadingCache<Directory>::Pointer>& listings, std::string_view name) {
    Directories found;
    for (std::size_t i = 0; i < directories.size(); ++i) {
        const auto* entry = listings[i]->find(name);
        if (entry == nullptr) continue;
        if (entry->type != DT_DIR) break;
        Reader& image = reader(directories[i]);
        found.push_back(in_layer(image_of(directories[i]), entry->inode));
        const auto inode = TRY(image.inode(entry->inode));
        const auto attributes = TRY(image.xattrs(inode.xattrs));
        if (is_opaque(attributes)) break;
    }
    return found;
}

std::expected<Directory, int> Layers::merged_listing(Reference reference) {
    const auto several = merged_.find(reference);
    const Directories& directories = several == merged_.end() ? Directories{reference} : several->second;
    Directory result;
    for (const Reference one : directories) {
        const auto loaded = TRY(reader(one).directory(within(one)));
        const Directory& lower = *loaded;
        const Directory upper = std::exchange(result, {});
        const auto take = [&](const Directory& from, Directory::Entry entry, std::size_t layer) {
            if (&from == &lower) entry.inode = in_layer(layer, entry.inode);
            append(result, entry, from.name(entry));
        };
        auto u = upper.entries.begin();
        auto l = lower.entries.begin();
        while (u != upper.entries.end() || l != lower.entries.end()) {
            const int order = u == upper.entries.end()   ? 1
                              : l == lower.entries.end() ? -1
                                                         : upper.name(*u).compare(lower.name(*l));
            if (order <= 0)
                take(upper, *u++, 0);
            else
                take(lower, *l, image_of(one));
            if (order >= 0) ++l;
        }
    }
    std::erase_if(result.entries, [this](const auto& entry) { return is_whiteout(entry.inode, entry.type); });
    return result;
}

std::size_t Layers::drop_caches() {
    std::size_t bytes = 0;
    for (const auto& reader : readers_)
        bytes += reader->drop_caches();
    return bytes;
}

LoadingCache<Directory>::Loaded Layers::directory(Reference reference) {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    if (image_of(reference) == 0) return readers_.front()->directory(reference);
    return listings_.get(reference, [&]() -> LoadingCache<Directory>::Loaded {
        auto listing = TRY(merged_listing(reference));
        return std::make_shared<const Directory>(std::move(listing));
    });
}

std::expected<Inode, int> Layers::inode(Reference reference) {
    const auto layer = image_of(reference);
    if (layer >= readers_.size()) return std::unexpected(EIO);
    auto inode = readers_[layer]->inode(within(reference));
    if (!inode || layer == 0) return inode;
    inode->number += first_numbers_[layer];
    if (S_ISDIR(inode->mode)) {
        const auto listing = TRY(directory(reference));
        inode->nlink = 2;
        for (const auto& entry : listing->entries)
            if (entry.type == DT_DIR) ++inode->nlink;
    }
    return inode;
}

std::expected<Reference, int> Layers::lookup(Reference directory, std::string_view name) {
    const auto listing = TRY(this->directory(directory));
    const auto* entry = listing->find(name);
    if (entry == nullptr) return std::unexpected(ENOENT);
    return entry->inode;
}

std::expected<std::string, int> Layers::read_link(Reference reference) const {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    return reader(reference).read_link(within(reference));
}

std::expected<void, int> Layers::read(Reference reference, std::uint64_t offset, std::size_t size,
                                      std::vector<Slice>& out) {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    return reader(reference).read(within(reference), offset, size, out);
}

std::expected<std::vector<ProfileBlock>, int> Layers::blocks_of(Reference reference) {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    return reader(reference).blocks_of(within(reference));
}

std::expected<StoredFile, int> Layers::stored_file(Reference reference) const {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    return reader(reference).stored_file(within(reference));
}

std::expected<std::vector<Xattr>, int> Layers::xattrs(Reference reference) const {
    if (image_of(reference) >= readers_.size()) return std::unexpected(EIO);
    Reader& image = reader(reference);
    const auto inode = TRY(image.inode(within(reference)));
    auto found = image.xattrs(inode.xattrs);
    if (found) std::erase_if(*found, [](const Xattr& one) { return one.name.starts_with(overlay_xattrs); });
    return found;
}

std::expected<Reference, int> Layers::find(std::string_view path) {
    Reference at = root();
    while (!path.empty()) {
        const auto slash = path.find('/');
        const auto next = lookup(at, path.substr(0, slash));
        // ENOTDIR: a file on the way, so nothing is below it.
        if (!next) return std::unexpected(next.error() == ENOTDIR ? ENOENT : next.error());
        at = *next;
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    return at;
}

Result<std::unique_ptr<Layers>> open_layers(std::span<const std::filesystem::path> paths) {
    std::vector<Layers::ImageFile> files;
    for (const auto& path : paths) {
        files.push_back({.file = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), .path = path});
        if (!files.back().file) return fail_errno("cannot open the image", path.string());
    }
    return Layers::open(std::move(files));
}

} // namespace containerize::image
