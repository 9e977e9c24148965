// Records which GPUs the packages of a finished environment were built for.
#pragma once

#include "environments/environment_builder.h"

namespace containerize::environments {

/// Notes the accelerated packages in the build record and warns about those that cannot use the target GPUs:
/// the CUDA version given by --cuda, otherwise the GPUs of this machine.
void record_accelerators(BuildContext& context);

} // namespace containerize::environments
