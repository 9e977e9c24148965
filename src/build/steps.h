// Runs the steps that make or update an installation.
#pragma once

#include "build/context.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "manifest/manifest.h"

namespace containerize::build {

/// Runs all steps, from EnvironmentBuilder::create() to the published installation. `previous` is the
/// manifest that an update starts from, or null for a new installation.
Result<BuildSummary> run_steps(const Workplace& place, environments::EnvironmentBuilder& builder,
                               const manifest::Manifest* previous);

} // namespace containerize::build
