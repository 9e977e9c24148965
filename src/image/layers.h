// The images of an installation, shown as one tree.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "image/reader.h"

#include <climits>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace containerize::image {

/// Extended attributes in which overlayfs keeps its state; never shown.
inline constexpr std::string_view overlay_xattrs = "user.overlay.";
/// Those of fuse-overlayfs; never packed.
inline constexpr std::string_view fuse_overlay_xattrs = "user.fuseoverlayfs.";
/// How deep directories can be: a path cannot name deeper ones.
inline constexpr std::size_t deepest_directory = PATH_MAX / 2;
/// Value "y" on a directory: hides what the layers below have at its path.
inline constexpr std::string_view opaque_xattr = "user.overlay.opaque";

/// Images are stacked as by overlayfs: directories are merged, unless the upper one is opaque; a whiteout (a
/// character device 0:0) removes a name; anything else replaces it. Which directories are merged is found
/// when the images are opened, from the upper images alone, so that processes that open the same images use
/// the same references. Thread-safe. Errors are Reader's.
///
/// Bits 48 to 63 of a Reference are the number of its image, 0 being the lowest: what no upper image touches
/// is read from the lowest one directly.
class Layers {
public:
    struct ImageFile {
        Fd file;
        std::filesystem::path path; ///< for messages
        std::uint64_t offset = 0;   ///< of the image in the file, in bytes
    };
    static constexpr std::size_t most_images = 1000;

    /// Opens images, the lowest first; at least one. They are merged at once.
    static Result<std::unique_ptr<Layers>> open(std::vector<ImageFile> images,
                                                const Instruments& instruments = {});

    /// Starts to prefetch, in the background, the blocks that profiles list: one profile for each image, the
    /// lowest first, without blocks where there is none. To be called at most once.
    void prefetch(const std::vector<Profile>& profiles, const PrefetchOptions& options);

    /// Drops cached data, which can be read again. Returns its size in bytes.
    std::size_t drop_caches();

    [[nodiscard]] Reference root() const { return root_; }
    [[nodiscard]] std::uint32_t block_size() const { return readers_.front()->block_size(); }
    [[nodiscard]] std::uint64_t inode_count() const { return first_numbers_.back(); }
    [[nodiscard]] std::uint64_t bytes() const;

    std::expected<Inode, int> inode(Reference reference);
    LoadingCache<Directory>::Loaded directory(Reference reference);
    std::expected<Reference, int> lookup(Reference directory, std::string_view name);
    std::expected<std::string, int> read_link(Reference reference) const;
    std::expected<void, int> read(Reference reference, std::uint64_t offset, std::size_t size,
                                  std::vector<Slice>& out);

    /// The blocks of a file in its image, its fragment last.
    std::expected<std::vector<ProfileBlock>, int> blocks_of(Reference reference);
    /// Where a file's content is in its image.
    [[nodiscard]] std::expected<StoredFile, int> stored_file(Reference reference) const;
    /// The images, the lowest first.
    [[nodiscard]] const std::vector<std::unique_ptr<Reader>>& images() const { return readers_; }
    /// The number of the image that holds an inode, the lowest being 0.
    [[nodiscard]] static std::size_t image_of(Reference reference) { return reference >> 48U; }

    /// Whether any file can have visible extended attributes.
    [[nodiscard]] bool has_xattrs() const { return has_xattrs_; }
    std::expected<std::vector<Xattr>, int> xattrs(Reference reference) const;

    /// The inode at a path relative to the root, without following links; ENOENT if there is none.
    std::expected<Reference, int> find(std::string_view path);

private:
    using Directories = std::vector<Reference>; ///< at one path, the uppermost first

    explicit Layers(const Instruments& instruments);
    std::expected<void, int> merge(const Directories& directories, std::size_t depth);
    /// The directories called `name` in `directories`, down to the first that hides those below.
    std::expected<Directories, int>
    subdirectories(const Directories& directories,
                   const std::vector<LoadingCache<Directory>::Pointer>& listings, std::string_view name);
    std::expected<Directory, int> merged_listing(Reference reference);
    [[nodiscard]] bool is_whiteout(Reference reference, std::uint8_t type) const;

    [[nodiscard]] static Reference within(Reference reference) { return reference & ((1ULL << 48U) - 1); }
    [[nodiscard]] static Reference in_layer(std::size_t layer, Reference reference) {
        return std::uint64_t{layer} << 48U | reference;
    }
    [[nodiscard]] Reader& reader(Reference reference) const { return *readers_[image_of(reference)]; }

    std::vector<std::unique_ptr<Reader>> readers_;
    std::vector<std::uint64_t> first_numbers_; ///< offset for each image's inode numbers; last: their sum
    std::unordered_map<Reference, Directories> merged_; ///< by the uppermost of the merged directories
    LoadingCache<Directory> listings_;                  ///< of directories that upper images have
    Reference root_ = 0;
    bool has_xattrs_ = false;
    std::shared_ptr<Statistics> statistics_;
    std::unique_ptr<Prefetch> prefetch_; ///< last: its threads use the readers
};

/// Opens the images in the files at `paths`, the lowest first.
Result<std::unique_ptr<Layers>> open_layers(std::span<const std::filesystem::path> paths);

} // namespace containerize::image
