// A cache of packages, each packed once as a squashfs image. Environments are linked from their stored
// blocks.
#pragma once

#include "core/error.h"
#include "image/reader.h"
#include "image/writer.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

/// Images are complete as soon as they have their name, and end with their own digest, which is compared each
/// time one is opened: what was cut off or changed is made again. Only this user's own files are used.
/// Thread-safe.
class PackageImages {
public:
    /// `fallback` is used if `directory` cannot be written.
    PackageImages(std::filesystem::path directory, std::filesystem::path fallback);

    /// Null if there is none, or a damaged one.
    [[nodiscard]] std::unique_ptr<image::Reader> find(const ImageKey& key) const;
    /// Makes the image and opens it. Two processes may do this at once: both results are used.
    [[nodiscard]] Result<std::unique_ptr<image::Reader>>
    make(const ImageKey& key, image::WriterOptions options, const Fill& fill) const;

private:
    std::filesystem::path directory_, fallback_;
};

struct ImagesUse {
    std::uint64_t files = 0, bytes = 0;
};

/// What `directory` holds, with what interrupted builds left.
ImagesUse images_in(const std::filesystem::path& directory);
/// Removes images that were not used for `unused`, and what interrupted builds left. Returns what was
/// removed.
Result<ImagesUse> remove_images(const std::filesystem::path& directory, std::chrono::hours unused);

struct Verified {
    ImagesUse good;
    std::vector<std::filesystem::path> damaged;
};
/// Removes the images whose digest is wrong. Returns all that remain, and the paths that were removed.
Result<Verified> verify_images(const std::filesystem::path& directory, unsigned jobs);

} // namespace containerize::packages
