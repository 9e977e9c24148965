#include "cli/exec.h"

#include <cstdlib>

namespace containerize::cli {

std::vector<char*> argument_vector(const std::vector<std::string>& words) {
    std::vector<char*> list;
    for (const auto& word : words)
        list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

void forget_tasks_of_job() {
    for (const char* name : {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_CPU_BIND"})
        unsetenv(name);
}

} // namespace containerize::cli
