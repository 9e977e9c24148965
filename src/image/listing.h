// All entries of one image, for linking them into another.
#pragma once

#include "core/error.h"
#include "image/reader.h"

#include <string>
#include <vector>

namespace containerize::image {

struct ListedEntry {
    std::string path; ///< relative to the image's root, which is not listed
    Reference reference = 0;
    Inode inode;
};

/// Every directory before what is in it, each sorted by the bytes of the names. Fails if the image is
/// damaged, or is no tree.
Result<std::vector<ListedEntry>> list_entries(Reader& reader);

/// All of a file's content. Fails if it has more than `most` bytes.
Result<std::string> content_of(Reader& reader, const ListedEntry& file, std::uint64_t most);

} // namespace containerize::image
