// Working in an installation as if it were writable: what is changed stays the user's own.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct DevOptions {
    std::string prefix;
    std::filesystem::path overlay;    ///< where changes are kept; empty: a place in the user's data directory
    std::vector<std::string> command; ///< empty: the user's shell
};

/// Runs the command at the terminal, in the environment of the installation, with a writable layer over it
/// that stays for the next time. Returns the command's exit code.
Result<int> develop(const DevOptions& options);

} // namespace containerize::install
