// Installations that are not at their original path.
#pragma once

#include "manifest/manifest.h"

#include <filesystem>
#include <string>

namespace containerize::manifest {

/// The shell command that moves the installation at `prefix` back to its original path; empty if something
/// else is there. An empty directory does not count: a launch has made it as a mount point.
std::string command_to_move_back(const Manifest& manifest, const std::filesystem::path& prefix);

} // namespace containerize::manifest
