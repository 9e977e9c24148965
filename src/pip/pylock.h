// Writes pylock.toml (PEP 751), from which containerize, pip and uv install the same packages again.
#pragma once

#include "pip/resolution.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// What the packages were chosen for: their wheels need not suit anything else.
struct ChosenFor {
    std::string_view python;  ///< "3.11.2"; a lock is for its minor version
    std::string_view machine; ///< "x86_64"
};

/// Without credentials. Local files have absolute paths. Fails with an input error if an address is none
/// without its secret, or a name cannot be written.
Result<std::string> pylock_text(const std::vector<ResolvedPackage>& packages, const ChosenFor& chosen_for);

} // namespace containerize::pip
