// What the packages of a finished environment were built for.
#pragma once

#include "install/recipe.h"

namespace containerize::install {

/// Notes it in the record of the build, and warns of packages that will not use the GPUs which the
/// environment is for: those of --cuda, else this machine's.
void record_accelerators(Workshop& shop);

} // namespace containerize::install
