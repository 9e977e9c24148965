// The states of an installation: what it was after it was made, and after each update.
#pragma once

#include "runtime/manifest.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

/// Where the records of a state lie, relative to the installation: its manifest, inputs, list of packages,
/// lock file and log. The installation's "share" has links to those of the current one.
std::filesystem::path state_directory(unsigned number);
inline constexpr const char* share_name = "share";
inline constexpr const char* states_name = "states";

/// In a manifest's "build", after a squash: the commands that made what was squashed, the oldest first.
inline constexpr const char* squashed_key = "squashed";

/// Where the layer that an update adds is.
inline constexpr const char* layers_name = "layers";
std::string layer_file(unsigned state); ///< "layers/0002.sqfs"

/// All states that can be gone back to, in the order of their numbers; the current one is among them.
Result<std::vector<runtime::Manifest>> read_states(const std::filesystem::path& prefix);

/// The manifest of an installation that can be changed: one that stands where it was built for. Else an input
/// error.
Result<runtime::Manifest> read_unmoved(const std::string& prefix);

/// A number that no state of the installation ever had.
Result<unsigned> next_state(const std::filesystem::path& prefix);

} // namespace containerize::install
