// Several layers as one image.
#pragma once

#include "image/layers.h"
#include "image/writer.h"
#include "util/error.h"

#include <filesystem>

namespace containerize::image {

/// Packs what `layers` show: byte for byte what write_tree() makes of such a tree. Content is compressed
/// anew, since where blocks begin and what shares a fragment depends on all files before.
Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress = {});

} // namespace containerize::image
