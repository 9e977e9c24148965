// Records what activating a conda environment changes, so that a launch needs no shell for it.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"
#include "launch/environment.h"

#include <string>
#include <vector>

namespace containerize::environments {

struct Activation {
    std::vector<launch::EnvironmentChange> changes;
    /// Scripts, relative to the prefix, that every launch must source, because their effect depends on the
    /// caller's environment.
    std::vector<std::string> scripts;
};

/// Runs etc/conda/activate.d in the environment at the prefix and collects the variables that packages set.
Result<Activation> record_activation(const BuildContext& context);

} // namespace containerize::environments
