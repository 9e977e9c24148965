// What activating a conda environment does, found out once, so that no launch needs a shell for it.
#pragma once

#include "install/recipe.h"
#include "runtime/environment.h"
#include "util/error.h"

#include <string>
#include <utility>
#include <vector>

namespace containerize::install {

struct Activation {
    std::vector<runtime::EnvironmentChange> changes;
    /// Scripts, relative to the prefix, that must be sourced at each launch: what they do depends on the
    /// caller's environment.
    std::vector<std::string> scripts;
};

/// Runs etc/conda/activate.d in the environment that stands at the prefix, and reads the variables that
/// packages and `variables` set.
Result<Activation> record_activation(const Workshop& shop,
                                     const std::vector<std::pair<std::string, std::string>>& variables);

} // namespace containerize::install
