// Slurm's short form of the number of tasks on each node.
#pragma once

#include "util/error.h"

#include <string_view>
#include <vector>

namespace containerize::cluster {

/// "2(x3),1" -> 2, 2, 2, 1. What is no such list is an input error; of nothing, nothing.
Result<std::vector<unsigned>> expand_tasks_per_node(std::string_view list);

} // namespace containerize::cluster
