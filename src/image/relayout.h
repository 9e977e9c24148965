// Files with blocks in a profile: to place them first in a new image, and to find them there again.
#pragma once

#include "image/access_profile.h"
#include "image/layers.h"

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

} // namespace containerize::image
