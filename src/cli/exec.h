// Helpers for executing other programs.
#pragma once

#include <string>
#include <vector>

namespace containerize::cli {

/// A null-terminated argv for exec. Valid as long as `words` is.
std::vector<char*> argument_vector(const std::vector<std::string>& words);

/// Removes Slurm's per-task settings from our environment, which our own job steps would inherit.
void forget_tasks_of_job();

} // namespace containerize::cli
