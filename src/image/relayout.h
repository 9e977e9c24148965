// Files of which a profile has blocks: to place them first in a new image, and to find them there again.
#pragma once

#include "image/layers.h"
#include "image/profile.h"

#include <cstddef>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace containerize::image {

struct RecordedFile {
    std::string path; ///< relative to the root
    Reference reference = 0;
    /// Which of its blocks are recorded, by their number in the file (the fragment is the last), and the
    /// place of each in the profiles.
    std::vector<std::pair<std::size_t, std::size_t>> blocks;
    [[nodiscard]] std::size_t first() const;
};

/// In the order in which they are wanted first; `profiles` has one for each image, the lowest first. A file
/// whose end shares a recorded block with others' counts.
std::expected<std::vector<RecordedFile>, int> recorded_files(Layers& layers,
                                                             const std::vector<Profile>& profiles);

/// The same parts of these files in one image that holds them too, in the same order.
std::expected<std::vector<ProfileBlock>, int> recorded_blocks(Layers& image,
                                                              const std::vector<RecordedFile>& files);

} // namespace containerize::image
