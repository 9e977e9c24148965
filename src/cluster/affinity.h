// Which CPUs a rank runs on, where Slurm has not said.
#pragma once

#include "cluster/site.h"

#include <filesystem>
#include <string_view>
#include <vector>

namespace containerize::cluster {

/// "0-3,8" -> 0, 1, 2, 3, 8: as sysfs and Slurm write sets of CPUs. What is no number ends the list.
std::vector<unsigned> parse_cpu_list(std::string_view list);

/// All CPUs of this machine, those of a memory node after each other and the threads of a core side by side.
/// `root` stands for "/".
std::vector<unsigned> cpus_by_nearness(const std::filesystem::path& root = "/");

/// The CPUs that this process may use.
std::vector<unsigned> allowed_cpus();

struct TaskOfNode {
    unsigned rank = 0, size = 1;
};
/// The CPUs for one of the tasks of a node. Empty where they must stay as they are: the profile asks for
/// nothing, the masks are for another number of tasks or name CPUs that are not `allowed`, or there are not
/// as many CPUs as tasks. `near` is what cpus_by_nearness() gives.
std::vector<unsigned> cpus_of_task(const Affinity& affinity, TaskOfNode task,
                                   const std::vector<unsigned>& allowed, const std::vector<unsigned>& near);

} // namespace containerize::cluster
