// Gives an installation the launcher and the session program of this version.
#pragma once

#include "build/build.h"
#include "core/error.h"

#include <cstddef>
#include <string>

namespace containerize::build {

struct Upgrade {
    std::filesystem::path prefix;
    std::string from;         ///< version of the programs before
    std::size_t commands = 0; ///< number of wrappers in place
    bool unchanged = false;   ///< the installation had this version's programs already
};

/// Replaces the programs in all wrapper directories, and the session program. States, images and records stay
/// as they are. Each file is replaced by a rename and the manifest comes last, so that after a kill the
/// installation works and the next upgrade completes this one. Uses only those options that say where things
/// are.
Result<Upgrade> upgrade(const inputs::BuildOptions& options);

} // namespace containerize::build
