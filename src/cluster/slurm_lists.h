// Expands Slurm's lists without scontrol, which may be missing where a program runs.
#pragma once

#include "core/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::cluster {

/// "n[1-3,07],gpu-[1-2]-a" -> n1, n2, n3, n07, gpu-1-a, gpu-2-a: keeps order and zero padding. Fails with an
/// input error if the list is malformed, or names more than a million hosts or one of more than 255
/// characters.
Result<std::vector<std::string>> expand_host_list(std::string_view list);

/// Numbers of tasks per node: "2(x3),1" -> 2, 2, 2, 1. An empty list gives an empty result; a malformed one
/// is an input error.
Result<std::vector<unsigned>> expand_tasks_per_node(std::string_view list);

} // namespace containerize::cluster
