// What differs between images and what was made of them: the content of a layer.
#pragma once

#include "image/tree_entries.h"
#include "image/writer.h"
#include "util/error.h"

#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

struct Changes {
    TreeEntries tree;               ///< with whiteouts, and the directories above what changed
    std::vector<std::string> files; ///< paths of what was changed, added and removed, other than directories
                                    ///< that were there before
};

/// Of an overlay (with userxattr) over `images` (the lowest first), from its upper directory.
Result<Changes> changes_in_overlay(const std::filesystem::path& upper,
                                   std::span<const std::filesystem::path> images, mode_t umask_bits);

/// Of a `tree` into which `images` (the lowest first) were unpacked, from what has changed after `since`, a
/// time of the tree's filesystem (`time_on`).
Result<Changes> changes_since(const std::filesystem::path& tree,
                              std::span<const std::filesystem::path> images, timespec since,
                              mode_t umask_bits);

/// A time after everything that was written there, and before everything that will be.
Result<timespec> time_on(const std::filesystem::path& directory);

/// Packs them as the image of a layer.
Result<WriteStats> write_changes(Changes& changes, const std::filesystem::path& image,
                                 const WriterOptions& options, const PackProgress& progress = {});

} // namespace containerize::image
