// Adding packages of conda to an environment that stands at the prefix, and removing such.
#pragma once

#include "conda/channel.h"
#include "install/recipe.h"
#include "util/error.h"

#include <vector>

namespace containerize::install {

/// Makes the environment what the input asks for, beside what it has; `prune`: nothing beside it. History and
/// records of conda-meta tell it. Returns the channels that it looked in.
Result<std::vector<conda::Channel>> change_packages(const Workshop& shop, bool prune);

} // namespace containerize::install
