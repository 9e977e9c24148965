// Runs the steps that make or update an installation.
#pragma once

#include "install/build.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/recipe.h"
#include "runtime/manifest.h"
#include "util/error.h"

namespace containerize::install {

/// Runs all steps, from Recipe::create() to the published installation. `previous` is the manifest that an
/// update starts from, or null for a new installation.
Result<BuildSummary> run_steps(Workshop& shop, Recipe& recipe, Janitor& janitor, const Claim& claim,
                               const runtime::Manifest* previous);

} // namespace containerize::install
