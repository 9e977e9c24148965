// A directory tree as a list of what is to be packed.
#pragma once

#include "image/writer.h"
#include "util/error.h"

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
    Attributes attributes;
    std::string target;          ///< of a symbolic link
    bool covers = false;         ///< whiteout, or opaque directory: what is below it at this path goes
    std::size_t original = npos; ///< for a further name of a file: the entry of its first name
    timespec changed{};          ///< when its inode was changed last
    ino_t inode = 0;
    static constexpr std::size_t npos = ~std::size_t{0};
};

struct TreeEntries {
    std::filesystem::path root;
    Attributes attributes_of_root;
    std::vector<TreeEntry> entries;    ///< depth first, each directory's in the order of their names' bytes
    std::vector<std::string> left_out; ///< what no image holds: sockets, devices
};

/// Modes are made fit for sharing (mode_for_sharing). The tree may be the upper directory of an overlay (with
/// userxattr).
Result<TreeEntries> list_tree(const std::filesystem::path& root, mode_t umask_bits);

/// Adds what is listed. What is in the image already makes way: a file for a file, and so on, while
/// directories are merged.
Status add_entries(Writer& writer, const TreeEntries& tree, Whiteouts whiteouts,
                   const PackProgress& progress);

} // namespace containerize::image
