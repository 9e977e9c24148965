// Compares an environment with its lock.
#pragma once

#include "core/error.h"
#include "environments/conda_contents.h"
#include "spec/conda_environment.h"

#include <string>
#include <vector>

namespace containerize::environments {

/// Fails with one error that lists every difference. Ignores the distributions in `before`: conda packages'
/// scripts installed them before pip ran, so no lock lists them.
Status check_against_lock(const spec::LockedEnvironment& locked, const CondaContents& installed,
                          const std::vector<pip::Distribution>& before, const std::string& file);

/// Fails if requirements in `file` replaced one of the pip packages that the lock brought, or took it away.
Status check_unchanged(const std::vector<pip::Distribution>& locked, const CondaContents& installed,
                       const std::string& file);

} // namespace containerize::environments
