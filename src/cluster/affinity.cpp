#include "cluster/affinity.h"

#include "core/cpus.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

namespace containerize::cluster {

namespace {

std::string first_line(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

bool contains(const std::vector<unsigned>& cpus, unsigned cpu) {
    return std::ranges::find(cpus, cpu) != cpus.end();
}

std::vector<unsigned> even_share(TaskOfNode task, const std::vector<unsigned>& allowed,
                                 const std::vector<unsigned>& near) {
    std::vector<unsigned> usable;
    std::ranges::copy_if(near, std::back_inserter(usable),
                         [&](unsigned cpu) { return contains(allowed, cpu); });
    const auto edge = [&](std::size_t number) {
        return usable.begin() + static_cast<std::ptrdiff_t>(usable.size() * number / task.size);
    };
    if (usable.size() < task.size) return {};
    return {edge(task.rank), edge(task.rank + 1)};
}

} // namespace

std::vector<unsigned> cpus_by_nearness(const std::filesystem::path& root) {
    const auto system = root / "sys/devices/system";
    std::vector<unsigned> cpus;
    for (const auto node : parse_cpu_list(first_line(system / "node/online"))) {
        const auto list = first_line(system / "node" / ("node" + std::to_string(node)) / "cpulist");
        // Sort by a core's first thread.
        std::multimap<unsigned, unsigned> by_core;
        for (const auto cpu : parse_cpu_list(list)) {
            const auto name = "cpu" + std::to_string(cpu);
            const auto threads =
                parse_cpu_list(first_line(system / "cpu" / name / "topology/thread_siblings_list"));
            by_core.emplace(threads.empty() ? cpu : threads.front(), cpu);
        }
        for (const auto& [core, cpu] : by_core)
            cpus.push_back(cpu);
    }
    return cpus;
}

std::vector<unsigned> cpus_of_task(const Affinity& affinity, TaskOfNode task,
                                   const std::vector<unsigned>& allowed, const std::vector<unsigned>& near) {
    if (task.size == 0 || task.rank >= task.size) return {};
    if (affinity.masks.size() == task.size) {
        const auto& cpus = affinity.masks[task.rank];
        const bool all = std::ranges::all_of(cpus, [&](unsigned cpu) { return contains(allowed, cpu); });
        return all ? cpus : std::vector<unsigned>();
    }
    // If the task has fewer CPUs than the node, it has been bound already.
    if (!affinity.numa || task.size == 1 || allowed.size() < near.size()) return {};
    return even_share(task, allowed, near);
}

} // namespace containerize::cluster
