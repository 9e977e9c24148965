// Reads an installation that tykky (hpc-container-wrapper) made.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::inputs {

struct TykkyInstallation {
    std::filesystem::path directory; ///< absolute, without symlinks
    std::string mode;                ///< "conda", "venv" or "wrapdisk"
    std::filesystem::path image;     ///< a squashfs file
    /// The path at which tykky shows the image's root, and which the files in it refer to.
    std::filesystem::path path_inside;
    /// Possible paths of the environment in the image, most likely first; "." for its root.
    std::vector<std::filesystem::path> environments;
    /// Directories or programs with wrappers besides those of the environment, relative to the image's root.
    std::vector<std::string> wrapper_paths;
    std::string container;                 ///< what the container was made from
    std::filesystem::path container_image; ///< the container's root filesystem; empty if tykky names none
    bool isolated = false;                 ///< its programs see no directory of the host
    std::vector<std::filesystem::path> records; ///< files that tykky keeps: settings, and what the user gave
};

/// Fails with an input error, with advice, if there is no such installation or it has no image of its own.
Result<TykkyInstallation> read_tykky_installation(const std::filesystem::path& directory);

/// Whether the environment only runs in tykky's container: its Python is not in its own image, and tykky
/// isolates it or this host has no Python at that path.
Result<bool> needs_container(const TykkyInstallation& tykky);

/// What an import adds to the manifest's "build".
nlohmann::json record_of(const TykkyInstallation& tykky, const std::filesystem::path& environment);

/// Where an environment lies: at the prefix or, after an import, somewhere below.
struct EnvironmentPlace {
    std::filesystem::path relative; ///< relative to the prefix; "." for the prefix itself
    std::filesystem::path inside;   ///< the path that its files refer to
};
/// Reads the place from the manifest's "build".
EnvironmentPlace place_of_environment(const nlohmann::json& build, const std::filesystem::path& prefix);

/// Links every entry of `environment` into `root`. The image's root is mounted at the prefix, as the
/// environment's files refer to paths below it, but programs are looked up at the prefix itself.
Status link_environment(const std::filesystem::path& root, const std::filesystem::path& environment);

} // namespace containerize::inputs
