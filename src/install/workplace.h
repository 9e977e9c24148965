// What every build has around it: a claim on its prefix, a staging directory, a log, a namespace.
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

/// Does `work`. On failure nothing is left but the log, which the message names.
Result<BuildSummary> in_workplace(const BuildOptions& options, const Inputs& inputs, const Work& work);

} // namespace containerize::install
