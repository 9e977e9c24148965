// Base images: the root filesystems that programs of an installation can run in, instead of the host's.
#pragma once

#include "base/registry.h"
#include "base/store.h"
#include "image/writer.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

struct BaseImage {
    std::string reference; ///< one spelling for all that mean the same (Reference::text)
    std::string
        digest; ///< "sha256:..." of the image's manifest, or of a .sif or .sqfs file; empty for directories
    std::filesystem::path file; ///< absolute; an image's file or a directory
    std::uint64_t offset = 0;   ///< of the squashfs in the file
    std::uint64_t size = 0;     ///< of the file; 0 for directories
    bool is_directory = false;
    ImageConfig config; ///< its environment always has a PATH
};

struct Options {
    std::filesystem::path store;                    ///< where images are put: store_directory()
    std::vector<std::filesystem::path> site_stores; ///< read-only ones, searched first
    std::vector<RegistryUrl> registries;
    std::uint64_t limit = std::uint64_t{256} << 30U; ///< bytes that an image's layers may have when unpacked
    image::WriterOptions writer;
    http::Settings http;
    Environment environment;
    bool refresh = false; ///< ask the registry even if a store has an image for the reference
};

/// Where an image says nothing.
inline constexpr const char* usual_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What `text` (reference.h) names, pulled and made an image if no store has it. What is a file or directory
/// already stays where it is.
Result<BaseImage> obtain(std::string_view text, const Options& options);

/// An image of a store as obtain() returns it.
BaseImage base_image(const StoredImage& stored, const std::string& reference);

} // namespace containerize::base
