// A copy of an image on this node's own disk, or in its memory, for where a parallel filesystem is slow or
// busy.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace containerize::runtime {

enum class StagePlace {
    off,
    held, ///< a copy that somebody holds (held_image.h) is used, and none made
    local,
    ram
};

/// The variable that asks for it, whatever the installation says: "auto", "off", "local" or "ram".
inline constexpr const char* stage_variable = "CONTAINERIZE_STAGE";
/// Of "auto", and of nothing: held. Anything else is an input error.
Result<StagePlace> parse_stage_place(std::string_view text);

/// Where copies on a node's disk go: $TMPDIR, or /tmp.
std::string local_directory();

/// Copies `size` bytes of `image` in large requests, and sees that they have the digest `sha256`. The copy
/// (`local` or `ram`) has no name, so that it goes with the last process that has it open, however that ends.
/// `local` is in $TMPDIR, or /tmp, unless that is on a network. What would take more than half of the space
/// or memory that is left is refused. `path` is the image's name, for messages.
Result<Fd> stage_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                       const std::string& sha256, StagePlace place);
/// Sees that the file's `size` bytes have that digest.
Status verify_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                    const std::string& sha256);

} // namespace containerize::runtime
