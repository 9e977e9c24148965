// Writes and reads back pylock.toml (PEP 751), from which containerize, pip and uv install the same packages
// again. spec/ reads those of other tools.
#pragma once

#include "core/error.h"
#include "spec/conda_environment.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// What the packages were chosen for: their wheels need not suit anything else.
struct ChosenFor {
    std::string_view python;  ///< "3.11.2"; a lock is for its minor version
    std::string_view machine; ///< "x86_64"
};

struct Pylock {
    std::vector<spec::LockedPackage> packages = {}; ///< each with its source
    // Of an installation, in the table [tool.containerize]:
    std::vector<std::string> options = {};  ///< lines of a requirements file that say how packages are found
    std::vector<std::string> of_venv = {};  ///< what Python brings to each venv: "pip==23.0.1"
    std::vector<std::string> left_out = {}; ///< packages that could not be listed: "six 1.16.0: REASON"
};

/// Whether a lock can list this package. Otherwise, an input error.
Status check_lockable(const spec::LockedPackage& package);

/// Without credentials. Local files have absolute paths, and files of indexes whose addresses contain a
/// secret have no address. Fails as check_lockable() does.
Result<std::string> pylock_text(const Pylock& lock, const ChosenFor& chosen_for);

/// Reads what pylock_text() wrote. Fails with an input error that names `file`.
Result<Pylock> parse_pylock(std::string_view text, const std::string& file);

} // namespace containerize::pip
