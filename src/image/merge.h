// Merging layers into one image.
#pragma once

#include "core/error.h"
#include "image/layers.h"
#include "image/relayout.h"
#include "image/writer.h"

#include <filesystem>
#include <vector>

namespace containerize::image {

/// Packs what `layers` show, byte for byte as write_tree() packs such a tree. Content is compressed anew,
/// because the start of blocks and the sharing of fragments depend on all files before. The content of
/// `first` comes before all other files', in this order; the image then differs from write_tree()'s.
Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress = {},
                                const std::vector<RecordedFile>& first = {});

} // namespace containerize::image
