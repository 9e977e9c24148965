// Selects CPUs for a rank if Slurm has not bound it.
#pragma once

#include "cluster/site.h"

#include <filesystem>
#include <vector>

namespace containerize::cluster {

/// All CPUs of this machine, grouped by NUMA node, with the threads of a core next to each other. `root`
/// replaces "/" in tests.
std::vector<unsigned> cpus_by_nearness(const std::filesystem::path& root = "/");

struct TaskOfNode {
    unsigned rank = 0, size = 1;
};
/// The CPUs for a task of a node. Empty if its affinity must not be changed: the profile has no setting, its
/// masks are for another number of tasks or include CPUs that are not `allowed`, or there are fewer CPUs than
/// tasks. `near` is the result of cpus_by_nearness().
std::vector<unsigned> cpus_of_task(const Affinity& affinity, TaskOfNode task,
                                   const std::vector<unsigned>& allowed, const std::vector<unsigned>& near);

} // namespace containerize::cluster
