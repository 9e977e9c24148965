// Copies of images on this node's own disk or in its memory, for when a parallel filesystem is slow or busy.
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
    held, ///< use a copy that a process holds (held_image.h), but make none
    local,
    ram
};

/// Overrides the installation's setting: "auto", "off", "local" or "ram".
inline constexpr const char* stage_variable = "CONTAINERIZE_STAGE";
/// Parses such a setting; "auto" and "" mean `held`. Anything else is an input error.
Result<StagePlace> parse_stage_place(std::string_view text);

/// Where copies on a node's disk go: $TMPDIR if it is absolute, else /tmp.
std::string local_directory();

/// Copies `size` bytes of `image` in large requests, and checks that their digest is `sha256`. The copy
/// (`local` or `ram`) has no name, so that it vanishes with the last process that has it open, however that
/// ends. `local` is in local_directory(), unless that is on a network filesystem. Fails if the copy would
/// take more than half of the available space or memory. `path` is the image's name, for messages.
Result<Fd> stage_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                       const std::string& sha256, StagePlace place);
/// Checks that the file's first `size` bytes have that digest.
Status verify_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                    const std::string& sha256);

} // namespace containerize::runtime
