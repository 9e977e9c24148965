// The steps by which an installation is made, and by which it is updated.
#pragma once

#include "install/build.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/recipe.h"
#include "runtime/manifest.h"
#include "util/error.h"

namespace containerize::install {

/// From the recipe's first step to the published installation. `previous` is what an update starts from;
/// null for a new installation.
Result<BuildSummary> run_steps(Workshop& shop, Recipe& recipe, Janitor& janitor, const Claim& claim,
                               const runtime::Manifest* previous);

} // namespace containerize::install
