// Prefetching for cold starts: settings, and the profiles that list what programs read first.
#pragma once

#include "image/layers.h"
#include "runtime/manifest.h"
#include "runtime/read_variables.h"
#include "util/error.h"
#include "util/fd.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::runtime {

/// A prefetch setting of a site or user: WHEN, or WHEN:SIZE:DEPTH.
struct PrefetchSetting {
    enum class When {
        automatic, ///< if the images are on a network filesystem
        always,
        never
    };
    When when = When::automatic;
    std::uint64_t size = 4U << 20U; ///< largest request, in bytes
    unsigned depth = 8;             ///< concurrent requests
};
/// Parses "auto", "on", "off" or, with size and depth, "auto:4M:8". Anything else is an input error.
Result<PrefetchSetting> parse_prefetch(std::string_view text);

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
ColdStart cold_start_of(const Manifest& manifest, const std::filesystem::path& directory,
                        std::span<const image::Layers::ImageFile> images);
/// Called in a server: starts to prefetch what the profiles list. Unusable profiles are ignored, because they
/// are only hints.
void prefetch(image::Layers& layers, const ColdStart& cold_start);

/// Instruments for a server's reads, from the environment of this process (read_variables.h).
image::Instruments instruments_of_environment();

/// The stripe size of the first component in `layout`, the extended attribute in which Lustre keeps a file's
/// layout; 0 if its format is unknown.
std::uint64_t stripe_size(std::span<const std::byte> layout);

} // namespace containerize::runtime
