// Merging layers into one image, with the files that have blocks in a profile first if that is wanted.
#pragma once

#include "image/access_profile.h"
#include "image/layers.h"
#include "image/writer.h"

#include <cstddef>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace containerize::image {

struct RecordedFile {
    std::string path; ///< relative to the root
    Reference reference = 0;
    /// Its recorded blocks: the number of each in the file (the fragment is the last), and its position in
    /// the profiles.
    std::vector<std::pair<std::size_t, std::size_t>> blocks;
    [[nodiscard]] std::size_t first() const;
};

/// All files with recorded blocks, in the order of their first use; `profiles` has one for each image, the
/// lowest first. Includes files whose end shares a recorded block with others.
Result<std::vector<RecordedFile>> recorded_files(Layers& layers, const std::vector<Profile>& profiles);

/// The same parts of these files in an image that has them, too, in the same order.
std::expected<std::vector<ProfileBlock>, int> recorded_blocks(Layers& image,
                                                              const std::vector<RecordedFile>& files);

struct MergeOptions {
    /// Otherwise most blocks are copied as they are, and only what has none of its own or other settings is
    /// compressed. The image is then larger, because of ends of blocks that no file uses, and blocks are in
    /// the order of the layers.
    bool compress_anew = false;
    /// The content of these comes before that of all other files, in this order.
    std::vector<RecordedFile> first = {};
    PackProgress progress = {};
};

/// Packs what `layers` show. If all is compressed anew, in the usual order, the image has the same bytes as
/// one that write_tree() makes of such a tree.
Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const MergeOptions& how = {});

} // namespace containerize::image
