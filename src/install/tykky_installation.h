// An installation that tykky (hpc-container-wrapper) made, as its own files describe it.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct TykkyInstallation {
    std::filesystem::path directory; ///< absolute, without links
    std::string mode;                ///< "conda", "venv" or "wrapdisk"
    std::filesystem::path image;     ///< a squashfs file
    /// Where its programs believe to be: there tykky shows the image's root.
    std::filesystem::path path_inside;
    /// Where the environment may be in the image, the likeliest first; "." for its root.
    std::vector<std::filesystem::path> environments;
    /// Directories, relative to the image's root, whose programs have wrappers beside the environment's own.
    std::vector<std::string> wrapper_paths;
    std::string container;                      ///< what its root filesystem was made from
    std::vector<std::filesystem::path> records; ///< settings, and what the user gave: files
};

/// An input error, which says what to do, where it is none or one that needs its container.
Result<TykkyInstallation> read_tykky_installation(const std::filesystem::path& directory);

} // namespace containerize::install
