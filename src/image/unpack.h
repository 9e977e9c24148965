// Unpacks images to files on disk, where they can be neither mounted nor covered by a writable layer.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <span>

namespace containerize::image {

/// Writes the tree of `images` (the lowest first) into the directory `target`: content, modes, times, links,
/// and extended attributes if the filesystem has them. The caller owns everything. Existing directories stay
/// as they are; other existing files are replaced.
Status unpack(std::span<const std::filesystem::path> images, const std::filesystem::path& target);

} // namespace containerize::image
