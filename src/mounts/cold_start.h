// Prefetching for cold starts: settings, and the profiles that list what programs read first.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "image/layers.h"
#include "launch/read_variables.h"
#include "manifest/manifest.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace containerize::mounts {

/// The path of an image's profile.
std::filesystem::path profile_of(const std::filesystem::path& image);
/// Reads the profile of the image with `digest`; fails if it is another image's. `path` is for messages.
Result<image::Profile> read_profile(int file, const std::filesystem::path& path, const std::string& digest);

/// What a server needs for prefetching. The files are opened before the mount hides them.
struct ColdStart {
    struct ProfileFile {
        Fd file; ///< not open if the image has no profile
        std::filesystem::path path;
        std::string image; ///< digest of the image that the profile must be of
    };
    std::vector<ProfileFile> profiles; ///< one for each image, the lowest first; empty: no prefetching
    image::RequestShape shape;
    unsigned depth = 0;
};
/// For the installation at `directory`, whose open images are `images`.
ColdStart cold_start_of(const manifest::Manifest& manifest, const std::filesystem::path& directory,
                        std::span<const image::Layers::ImageFile> images);
/// Called in a server: starts to prefetch what the profiles list. Unusable profiles are ignored, because they
/// are only hints.
void prefetch(image::Layers& layers, const ColdStart& cold_start);

/// Instruments for a server's reads, from the environment of this process (read_variables.h).
image::Instruments instruments_of_environment();

/// The stripe size of the first component in `layout`, the extended attribute in which Lustre keeps a file's
/// layout; 0 if its format is unknown.
std::uint64_t stripe_size(std::span<const std::byte> layout);

} // namespace containerize::mounts
