// Adds conda packages to, and removes them from, the environment at the prefix.
#pragma once

#include "conda/channel.h"
#include "core/error.h"
#include "environments/conda_plan.h"
#include "environments/environment_builder.h"

#include <vector>

namespace containerize::environments {

/// Installs what the input asks for into the existing environment, and with `prune` removes everything else.
/// Updates history and records in conda-meta. Returns the channels that were searched.
Result<std::vector<conda::Channel>> change_packages(const BuildContext& context, bool prune);

/// What change_packages() would change.
Result<CondaChanges> plan_changes(const BuildContext& context, bool prune);

} // namespace containerize::environments
