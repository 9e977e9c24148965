// Starting programs from a command of ours.
#pragma once

#include <string>
#include <vector>

namespace containerize::cli {

/// As exec wants them; valid as long as `words` are.
std::vector<char*> argument_vector(const std::vector<std::string>& words);

/// Takes from our environment what Slurm says of the job's tasks: it would hold for a step's own, too.
void forget_tasks_of_job();

} // namespace containerize::cli
