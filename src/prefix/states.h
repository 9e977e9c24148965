// The states of an installation: one when it was made and one after each update.
#pragma once

#include "core/error.h"
#include "manifest/manifest.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::prefix {

/// The directory of a state's records, relative to the installation: manifest, inputs, package list, lock
/// file and log. "share" links to those of the current state.
std::filesystem::path state_directory(unsigned number);
inline constexpr const char* share_name = "share";
inline constexpr const char* states_name = "states";

/// Key in a manifest's "build" after a squash: the commands that made the squashed states, oldest first.
inline constexpr const char* squashed_key = "squashed";

/// The directory of the layers that updates add.
inline constexpr const char* layers_name = "layers";
std::string layer_file(unsigned state); ///< "layers/0002.sqfs"

/// Returns all states that can be returned to, including the current one, sorted by number.
Result<std::vector<manifest::Manifest>> read_states(const std::filesystem::path& prefix);

/// Reads the manifest of an installation that is to be changed. Fails with an input error if there is none,
/// if a newer containerize made it, or if it was moved from where it was built for.
Result<manifest::Manifest> read_changeable(const std::string& prefix);

/// Returns a number higher than that of any state on disk.
Result<unsigned> next_state(const std::filesystem::path& prefix);

} // namespace containerize::prefix
