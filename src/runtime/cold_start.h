// What makes the first reads of a mount fast: profiles of its images, and how they are read ahead.
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

/// As a site or a user has it: WHEN, or WHEN:SIZE:DEPTH.
struct PrefetchSetting {
    enum class When {
        automatic, ///< if the images are on a network's filesystem
        always,
        never
    };
    When when = When::automatic;
    std::uint64_t size = 4U << 20U; ///< bytes of a request, at most
    unsigned depth = 8;             ///< requests at once
};
/// "auto", "on", "off", "auto:4M:8". The error is an input error.
Result<PrefetchSetting> parse_prefetch(std::string_view text);

/// The place of an image's profile.
std::filesystem::path profile_of(const std::filesystem::path& image);
/// Reads the profile of an image; fails if it is of another one.
Result<image::Profile> read_profile(int file, const std::filesystem::path& path, const std::string& digest);

/// What a server needs of it, opened before the mount hides the files.
struct ColdStart {
    struct ProfileFile {
        Fd file; ///< none where an image has no profile, or nothing is to be read ahead
        std::filesystem::path path;
        std::string image; ///< the digest that it must have
    };
    std::vector<ProfileFile> profiles; ///< one for each image, the lowest first
    image::RequestShape shape;
    unsigned depth = 0;
};
/// Of the installation at `directory`; `images` are its open images.
ColdStart cold_start_of(const Manifest& manifest, const std::filesystem::path& directory,
                        std::span<const image::Layers::ImageFile> images);
/// In a server: begins to read ahead. A profile that cannot be used is passed over: it is only a hint.
void prefetch(image::Layers& layers, const ColdStart& cold_start);

/// How a server of this process's environment reads images.
image::Instruments instruments_of_environment();

/// The size of the first component's stripes, from the attribute in which Lustre keeps a file's layout; 0 if
/// it is not one that is known.
std::uint64_t stripe_size(std::span<const std::byte> layout);

} // namespace containerize::runtime
