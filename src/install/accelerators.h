// Records which GPUs the packages of a finished environment were built for.
#pragma once

#include "install/recipe.h"

namespace containerize::install {

/// Notes the accelerated packages in the build record and warns about those that cannot use the target GPUs:
/// the CUDA version given by --cuda, otherwise the GPUs of this machine.
void record_accelerators(Workshop& shop);

} // namespace containerize::install
