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
std::expected<std::vector<RecordedFile>, int> recorded_files(Layers& layers,
                                                             const std::vector<Profile>& profiles);

/// The same parts of these files in an image that has them, too, in the same order.
std::expected<std::vector<ProfileBlock>, int> recorded_blocks(Layers& image,
                                                              const std::vector<RecordedFile>& files);

/// Packs what `layers` show, byte for byte as write_tree() packs such a tree. Content is compressed anew,
/// because the start of blocks and the sharing of fragments depend on all files before. The content of
/// `first` comes before all other files', in this order; the image then differs from write_tree()'s.
Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress = {},
                                const std::vector<RecordedFile>& first = {});

} // namespace containerize::image
