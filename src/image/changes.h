// What was changed over a set of images: the content of a new layer.
#pragma once

#include "core/error.h"
#include "image/tree_entries.h"
#include "image/writer.h"

#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

struct Changes {
    TreeEntries tree;               ///< with whiteouts, and the directories above all changes
    std::vector<std::string> files; ///< changed, added or removed, except directories that existed
};

/// The changes in `upper`, the upper directory of an overlay (with userxattr) over `images`, the lowest
/// first.
Result<Changes> changes_in_overlay(const std::filesystem::path& upper,
                                   std::span<const std::filesystem::path> images, mode_t umask_bits);

/// Whether fuse-overlayfs can show the images: not if they have a name by which it marks removals,
/// ".wh.NAME".
Result<bool> suits_fuse_overlay(std::span<const std::filesystem::path> images);
/// The changes in an overlay of fuse-overlayfs over `images` (the lowest first), from its upper directory and
/// from `merged`, what it shows. How that program marks removals depends on its version and privileges, and a
/// rename to another directory can go unmarked. So removals are found by looking for what the images have.
Result<Changes> changes_in_fuse_overlay(const std::filesystem::path& upper,
                                        const std::filesystem::path& merged,
                                        std::span<const std::filesystem::path> images, mode_t umask_bits);

/// The state of a tree on disk at some time, to find what changed in it afterwards.
struct Snapshot {
    timespec time = {}; ///< by its filesystem's clock
    std::unordered_map<std::string, ino_t> inodes;
};
Result<Snapshot> take_snapshot(const std::filesystem::path& tree);

/// The changes since `before` in a `tree` into which `images` (the lowest first) were unpacked.
Result<Changes> changes_since(const Snapshot& before, const std::filesystem::path& tree,
                              std::span<const std::filesystem::path> images, mode_t umask_bits);

/// Packs the changes as the image of a layer.
Result<WriteStats> write_changes(Changes& changes, const std::filesystem::path& image,
                                 const WriterOptions& options, const PackProgress& progress = {});

} // namespace containerize::image
