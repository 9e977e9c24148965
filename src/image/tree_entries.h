// A directory tree as a list of entries to pack.
#pragma once

#include "core/error.h"
#include "image/writer.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

struct TreeEntry {
    std::string path; ///< relative to the root
    mode_t type = 0;  ///< S_IFCHR: a whiteout
    std::uint64_t size = 0;
    Attributes attributes = {};
    std::string target = {};     ///< of a symbolic link
    bool covers = false;         ///< a whiteout or opaque directory: hides what is below it at this path
    std::size_t original = npos; ///< of a further hard link: the entry of the first name
    timespec changed = {};       ///< ctime
    ino_t inode = 0;
    static constexpr std::size_t npos = ~std::size_t{0};
};

struct TreeEntries {
    std::filesystem::path root;
    Attributes attributes_of_root;
    std::vector<TreeEntry> entries = {};    ///< depth first, each directory sorted by the bytes of the names
    std::vector<std::string> left_out = {}; ///< what no image holds: sockets, pipes, devices
};

/// Lists a tree, with modes made fit for sharing (mode_for_sharing). It may be the upper directory of an
/// overlay (with userxattr).
Result<TreeEntries> list_tree(const std::filesystem::path& root, mode_t umask_bits);

/// Adds what is listed. It replaces what the image has at the same paths, except that directories are merged.
Status add_entries(Writer& writer, const TreeEntries& tree, Whiteouts whiteouts,
                   const PackProgress& progress);

} // namespace containerize::image
