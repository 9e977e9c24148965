// Copies of images on this node's own disk or in its memory, for when a parallel filesystem is slow or busy.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "manifest/launch_settings.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace containerize::mounts {

/// Where copies on a node's disk go: $TMPDIR if it is absolute, else /tmp.
std::string local_directory();

/// Copies `size` bytes of `image` in large requests, and checks that their digest is `sha256`. The copy
/// (`local` or `ram`) has no name, so that it vanishes with the last process that has it open, however that
/// ends. `local` is in local_directory(), unless that is on a network filesystem. Fails if the copy would
/// take more than half of the available space or memory. `path` is the image's name, for messages.
Result<Fd> stage_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                       const std::string& sha256, manifest::StagePlace place);
/// Checks that the file's first `size` bytes have that digest.
Status verify_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                    const std::string& sha256);

} // namespace containerize::mounts
