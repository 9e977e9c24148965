// A whole image as files on disk: for where it can be neither mounted nor written over.
#pragma once

#include "util/error.h"

#include <filesystem>

namespace containerize::image {

/// Writes the image's tree into the directory `target`, which exists and is empty: content, modes, times,
/// links. Owned by the caller.
Status unpack(const std::filesystem::path& image, const std::filesystem::path& target);

} // namespace containerize::image
