// Runs the steps that make or update an installation.
#pragma once

#include "build/build.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "manifest/manifest.h"
#include "prefix/cleanup_process.h"
#include "prefix/prefix.h"

namespace containerize::build {

/// Runs all steps, from EnvironmentBuilder::create() to the published installation. `previous` is the
/// manifest that an update starts from, or null for a new installation.
Result<BuildSummary> run_steps(environments::BuildContext& context, environments::EnvironmentBuilder& builder,
                               prefix::CleanupProcess& cleanup, const prefix::PrefixLock& lock,
                               const manifest::Manifest* previous);

} // namespace containerize::build
