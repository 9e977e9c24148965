// What differs between images and what was made of them: the content of a layer.
#pragma once

#include "image/tree_entries.h"
#include "image/writer.h"
#include "util/error.h"

#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
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

/// Not if something in them has a name that fuse-overlayfs takes for a note that something was removed:
/// ".wh.NAME".
Result<bool> suits_fuse_overlay(std::span<const std::filesystem::path> images);
/// Of an overlay by fuse-overlayfs over `images` (the lowest first), from its upper directory and from
/// `merged`, what it shows. How that program notes what was removed depends on its version and its rights,
/// and a name given to another directory can go unnoted: so removals are found by looking for what the images
/// have.
Result<Changes> changes_in_fuse_overlay(const std::filesystem::path& upper,
                                        const std::filesystem::path& merged,
                                        std::span<const std::filesystem::path> images, mode_t umask_bits);

/// What a tree on disk was at a time, so that it can be told what of it changed afterwards.
struct Snapshot {
    timespec time{}; ///< of its filesystem
    std::unordered_map<std::string, ino_t> inodes;
};
Result<Snapshot> take_snapshot(const std::filesystem::path& tree);

/// Of a `tree` into which `images` (the lowest first) were unpacked: what is not as it was `before`.
Result<Changes> changes_since(const Snapshot& before, const std::filesystem::path& tree,
                              std::span<const std::filesystem::path> images, mode_t umask_bits);

/// Packs them as the image of a layer.
Result<WriteStats> write_changes(Changes& changes, const std::filesystem::path& image,
                                 const WriterOptions& options, const PackProgress& progress = {});

} // namespace containerize::image
