// Runs the scripts that conda packages bring for installation and removal.
#pragma once

#include "conda/link.h"
#include "core/error.h"
#include "environments/environment_builder.h"

#include <vector>

namespace containerize::environments {

/// Runs each script in the activated environment and shows the messages it leaves for the user. Fails at the
/// first script that fails.
Status run_link_scripts(const BuildContext& context, const std::vector<conda::LinkScript>& scripts);

/// Runs bin/.NAME-pre-unlink.sh of each package that has one. Failures are only warned about, and do not stop
/// the removal.
void run_unlink_scripts(const BuildContext& context, const std::vector<conda::PackageRecord>& packages);

} // namespace containerize::environments
