// An installation that tykky (hpc-container-wrapper) made, as its own files describe it.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::install {

struct TykkyInstallation {
    std::filesystem::path directory; ///< absolute, without links
    std::string mode;                ///< "conda", "venv" or "wrapdisk"
    std::filesystem::path image;     ///< a squashfs file
    /// Where its programs believe to be: there tykky shows the image's root.
    std::filesystem::path path_inside;
    /// Where the environment may be in the image, the likeliest first; "." for its root.
    std::vector<std::filesystem::path> environments;
    /// Directories, or single programs, relative to the image's root, that have wrappers beside the
    /// environment's own.
    std::vector<std::string> wrapper_paths;
    std::string container;                 ///< what its root filesystem was made from
    std::filesystem::path container_image; ///< that filesystem; empty where tykky names none
    bool isolated = false;                 ///< its programs see none of the host's, but the container's own
    std::vector<std::filesystem::path> records; ///< settings, and what the user gave: files
};

/// An input error, which says what to do, where it is none, or one of which there is no image to take over.
Result<TykkyInstallation> read_tykky_installation(const std::filesystem::path& directory);

/// Whether the environment runs only with the container as root: its Python is not in its own image, and
/// either tykky isolated it or this host has no such Python.
Result<bool> needs_container(const TykkyInstallation& tykky);

/// What an import records of itself (the manifest's "build").
nlohmann::json record_of(const TykkyInstallation& tykky, const std::filesystem::path& environment);

/// Where an installation's environment is: at the prefix, or where tykky has it in its image.
struct EnvironmentPlace {
    std::filesystem::path relative; ///< to the prefix; "." for the prefix itself
    std::filesystem::path inside;   ///< the path that its files name
};
/// From the manifest's "build".
EnvironmentPlace place_of_environment(const nlohmann::json& build, const std::filesystem::path& prefix);

/// The image's root stands at the prefix, because the environment's files name paths below it. By links in
/// `root` all that is in the `environment` is to be found there as well.
Status link_environment(const std::filesystem::path& root, const std::filesystem::path& environment);

} // namespace containerize::install
