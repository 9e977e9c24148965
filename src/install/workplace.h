// Sets up what every build needs: a claim on its prefix, a staging directory, a log and a namespace.
#pragma once

#include "install/build.h"
#include "install/inputs.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/recipe.h"
#include "util/error.h"

#include <functional>

namespace containerize::install {

using Work = std::function<Result<BuildSummary>(Workshop&, Janitor&, const Claim&)>;

/// Runs `work`. On failure leaves nothing but the log, whose path is in the error message.
Result<BuildSummary> in_workplace(const BuildOptions& options, const Inputs& inputs, const Work& work);

} // namespace containerize::install
