// Records what activating a conda environment changes, so that a launch needs no shell for it.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"

namespace containerize::environments {

/// Runs etc/conda/activate.d in the environment at the prefix and collects the variables that packages set.
Result<Activation> record_activation(const BuildContext& context);

} // namespace containerize::environments
