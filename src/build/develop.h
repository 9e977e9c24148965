// Makes an installation writable for one user, whose changes are kept apart from it.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::build {

struct DevOptions {
    std::string prefix;
    std::filesystem::path overlay;    ///< where changes are kept; empty: in the user's data directory
    std::vector<std::string> command; ///< empty: the user's shell
};

/// Runs the command at the terminal in the installation's environment. Changes go to a writable layer that is
/// kept for the next call. Returns the command's exit code.
Result<int> develop(const DevOptions& options);

} // namespace containerize::build
