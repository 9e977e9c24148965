// A cache of packages, each packed once as a squashfs image. Environments are linked from their stored
// blocks.
#pragma once

#include "core/error.h"
#include "image/reader.h"
#include "image/writer.h"
#include "util/cache_limits.h"
#include "util/file_lock.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::packages {

/// All that decides an image's bytes.
struct ImageKey {
    std::string archive;   ///< sha256 of the package's archive, in hexadecimal
    std::string part = {}; ///< what of the package: empty for its files, otherwise for what they were made
    image::Compression compression;
    std::uint32_t block_size = 0;

    /// "SHA256[-PART]-zstd3-128K.1.sqfs"; the last number is that of the format.
    [[nodiscard]] std::string file_name() const;
};

/// Puts a package into an image. Called again with another writer if the cache cannot be written.
using Fill = std::function<Status(image::Writer& writer)>;

/// A directory whose images are read, and never written. Only trusted users can have written to it.
struct OthersImages {
    std::filesystem::path directory;
    uid_t owner; ///< trusted as root and this user are
};

/// Where images are looked for, in this order.
struct ImagePlaces {
    std::filesystem::path directory; ///< this user's; new images are made here
    std::vector<OthersImages> others = {};
    std::filesystem::path fallback; ///< used if `directory` cannot be written
    mode_t mode = 0600;             ///< of new images
};

/// Images are complete as soon as they have their name, and end with their own digest, which is compared each
/// time one is opened: what was cut off or changed is made again. Only files of this user, and of those who
/// are trusted with a directory of others, are used. Thread-safe.
class PackageImages {
public:
    explicit PackageImages(ImagePlaces places) : places_(std::move(places)) {}

    /// Null if there is none, or a damaged one. Damaged ones of others are named in a warning.
    [[nodiscard]] std::unique_ptr<image::Reader> find(const ImageKey& key) const;
    /// Makes the image and opens it. Two processes may do this at once: both results are used.
    [[nodiscard]] Result<std::unique_ptr<image::Reader>>
    make(const ImageKey& key, image::WriterOptions options, const Fill& fill) const;

private:
    [[nodiscard]] std::unique_ptr<image::Reader> find_own(const std::filesystem::path& path) const;
    [[nodiscard]] static std::unique_ptr<image::Reader> find_other(const std::filesystem::path& path,
                                                                   uid_t owner);
    [[nodiscard]] Result<std::unique_ptr<image::Reader>> make_in(const std::filesystem::path& directory,
                                                                 const ImageKey& key,
                                                                 image::WriterOptions options,
                                                                 const Fill& fill) const;

    ImagePlaces places_;
};

/// A lock on the images in `directory`: builds share it as long as they read images, and whoever removes
/// images tries to have it alone. Waits for the latter.
Result<FileLock> lock_for_reading(const std::filesystem::path& directory);
Result<FileLock> try_lock_for_removing(const std::filesystem::path& directory);

struct ImagesUse {
    std::uint64_t files = 0, bytes = 0;
};

/// What `directory` holds, with what interrupted builds left.
ImagesUse images_in(const std::filesystem::path& directory);
ImagesUse images_in(const OthersImages& others);
/// The complete images in `directory`.
std::vector<CachedFile> image_files_in(const std::filesystem::path& directory);
/// How long a build that cannot be noticed, where there are no locks, is taken to need its images.
inline constexpr std::chrono::hours longest_build{24};

struct RemovedImages {
    ImagesUse removed;
    bool in_use = false; ///< a build runs, so those that were used in the last day were kept
};
/// Removes images that were not used for `unused`, and what interrupted builds left.
Result<RemovedImages> remove_images(const std::filesystem::path& directory, std::chrono::hours unused);

struct Verified {
    ImagesUse good;
    std::vector<std::filesystem::path> damaged;
};
/// Removes the images whose digest is wrong. Returns all that remain, and the paths that were removed.
Result<Verified> verify_images(const std::filesystem::path& directory, unsigned jobs);
/// The same, but removes nothing.
Result<Verified> verify_images(const OthersImages& others, unsigned jobs);

} // namespace containerize::packages
