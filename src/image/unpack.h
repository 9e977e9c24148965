// Whole images as files on disk: for where it can be neither mounted nor written over.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <span>

namespace containerize::image {

/// Writes the tree of `images` (the lowest first) into the directory `target`: content, modes, times, links,
/// extended attributes where the filesystem takes them. Owned by the caller. Directories that are there are
/// left as they are; of everything else the images' takes the place.
Status unpack(std::span<const std::filesystem::path> images, const std::filesystem::path& target);

} // namespace containerize::image
