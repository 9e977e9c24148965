// Installations that are not where they were built for.
#pragma once

#include "runtime/manifest.h"

#include <filesystem>
#include <string>

namespace containerize::runtime {

/// The shell's command that puts an installation that is now at `prefix` back where it was built for; empty
/// where something else is there. An empty directory is not: a launch has made that to show it there.
std::string command_to_move_back(const Manifest& manifest, const std::filesystem::path& prefix);

} // namespace containerize::runtime
