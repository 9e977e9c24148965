// Expands Slurm's lists of task counts per node.
#pragma once

#include "core/error.h"

#include <string_view>
#include <vector>

namespace containerize::cluster {

/// "2(x3),1" -> 2, 2, 2, 1. An empty list gives an empty result; a malformed one is an input error.
Result<std::vector<unsigned>> expand_tasks_per_node(std::string_view list);

} // namespace containerize::cluster
