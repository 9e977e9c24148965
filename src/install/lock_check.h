// Whether an environment is what a lock says.
#pragma once

#include "install/conda_contents.h"
#include "spec/conda_environment.h"
#include "util/error.h"

#include <string>
#include <vector>

namespace containerize::install {

/// One message that names each difference. `before` are those that were there before pip's part of the lock
/// was installed, by packages of conda that do so: no lock knows them.
Status check_against_lock(const spec::LockedEnvironment& locked, const CondaContents& installed,
                          const std::vector<pip::Distribution>& before, const std::string& file);

} // namespace containerize::install
