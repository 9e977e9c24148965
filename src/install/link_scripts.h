// What packages run after their files are there, and before they go.
#pragma once

#include "conda/link.h"
#include "install/recipe.h"
#include "util/error.h"

#include <vector>

namespace containerize::install {

/// Each script in the activated environment, in which the packages' files are. What a script wants the user
/// to know is shown.
Status run_link_scripts(const Workshop& shop, const std::vector<conda::LinkScript>& scripts);

/// bin/.NAME-pre-unlink.sh of each package that has one. One that fails is only warned about: its package
/// goes all the same.
void run_unlink_scripts(const Workshop& shop, const std::vector<conda::PackageRecord>& packages);

} // namespace containerize::install
