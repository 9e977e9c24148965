// Work that goes on after the command has ended.
#pragma once

#include "core/error.h"
#include "core/variables.h"

#include <string>
#include <vector>

namespace containerize {

/// Starts this program again with `arguments`, for example {"profile", "/dir"}, with low priority and in a
/// session of its own. It has none of our descriptors, the root as its working directory, and no output:
/// whoever waits for our output, for a lock that we inherited or for a directory to become unused does not
/// wait for it.
Status start_in_background(const std::vector<std::string>& arguments, const Environment& environment);

} // namespace containerize
