// Several layers as one image.
#pragma once

#include "image/layers.h"
#include "image/relayout.h"
#include "image/writer.h"
#include "util/error.h"

#include <filesystem>
#include <vector>

namespace containerize::image {

/// Packs what `layers` show: byte for byte what write_tree() makes of such a tree. Content is compressed
/// anew, since where blocks begin and what shares a fragment depends on all files before. `first` are files
/// whose content comes before all others', in this order: then the image differs from that.
Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress = {},
                                const std::vector<RecordedFile>& first = {});

} // namespace containerize::image
