// Adding packages of conda to an environment that stands at the prefix, and removing such.
#pragma once

#include "conda/channel.h"
#include "install/recipe.h"
#include "util/error.h"

#include <cstddef>
#include <vector>

namespace containerize::install {

struct CondaChange {
    std::size_t added = 0, removed = 0;
    std::vector<conda::Channel> channels;
};

/// Makes the environment what the input asks for, beside what it has; `prune`: nothing beside it. History and
/// records of conda-meta tell it.
Result<CondaChange> change_packages(const Workshop& shop, bool prune);

} // namespace containerize::install
