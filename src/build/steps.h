// Runs the steps that make or update an installation.
#pragma once

#include "build/build.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "manifest/manifest.h"
#include "prefix/janitor.h"
#include "prefix/prefix.h"

namespace containerize::build {

/// Runs all steps, from Recipe::create() to the published installation. `previous` is the manifest that an
/// update starts from, or null for a new installation.
Result<BuildSummary> run_steps(environments::Workshop& shop, environments::Recipe& recipe,
                               prefix::Janitor& janitor, const prefix::Claim& claim,
                               const manifest::Manifest* previous);

} // namespace containerize::build
