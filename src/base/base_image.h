// Base images: root filesystems in which an installation's programs can run instead of the host's.
#pragma once

#include "base/registry.h"
#include "base/store.h"
#include "core/error.h"
#include "image/writer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

struct BaseImage {
    std::string reference; ///< normalized (Reference::text)
    std::string digest; ///< "sha256:..." of the manifest, or of a .sif or .sqfs file; empty for directories
    std::filesystem::path file; ///< absolute path of an image or a directory
    std::uint64_t offset = 0;   ///< of the squashfs in the file, in bytes
    std::uint64_t size = 0;     ///< of the file; 0 for directories
    bool is_directory = false;
    ImageConfig config; ///< its environment always has a PATH
};

struct Options {
    std::filesystem::path store;                    ///< where new images are put: store_directory()
    std::vector<std::filesystem::path> site_stores; ///< read-only ones, searched first
    std::vector<RegistryUrl> registries;
    std::uint64_t limit = std::uint64_t{256} << 30U; ///< most bytes of an image's unpacked layers
    image::WriterOptions writer;
    http::Settings http;
    Environment environment;
    bool offline = false; ///< use only stores, files and directories, never the network
    bool refresh = false; ///< ask the registry even if a store has an image for the reference
};

/// For images that do not set PATH.
inline constexpr const char* usual_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the base that `text` (reference.h) names. Pulls it and makes an image if no store has it; an image
/// file or a directory stays where it is.
Result<BaseImage> obtain(std::string_view text, const Options& options);

/// A stored image in the form that obtain() returns.
BaseImage base_image(const StoredImage& stored, const std::string& reference);

} // namespace containerize::base
