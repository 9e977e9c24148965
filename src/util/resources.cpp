#include "util/resources.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize {

namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
/// One worker compresses, compiles or links with about this much at hand.
constexpr std::uint64_t memory_per_job = 512U << 20U;
constexpr unsigned most_on_shared_node = 8;

std::optional<std::string> first_line(const fs::path& file) {
    std::ifstream stream(file);
    std::string line;
    if (!std::getline(stream, line)) return std::nullopt;
    return line;
}

std::uint64_t limit_in(const fs::path& file) {
    const auto line = first_line(file);
    if (!line || *line == "max") return unlimited;
    char* end = nullptr;
    const auto value = std::strtoull(line->c_str(), &end, 10);
    return end == line->c_str() ? unlimited : value;
}

struct Limits {
    double cpus = std::numeric_limits<double>::infinity();
    std::uint64_t memory = unlimited;
};

void take_quota(Limits& limits, double quota, double period) {
    if (quota > 0 && period > 0) limits.cpus = std::min(limits.cpus, quota / period);
}

// Limits hold for everything below, so each group up to the hierarchy's root counts.
template<class Look>
void for_each_ancestor(const fs::path& mount, const std::string& group, Look look) {
    for (fs::path relative = fs::path(group).relative_path();; relative = relative.parent_path()) {
        look(mount / relative);
        if (relative.empty()) return;
    }
}

void look_v2(Limits& limits, const fs::path& directory) {
    limits.memory = std::min(limits.memory, limit_in(directory / "memory.max"));
    if (const auto line = first_line(directory / "cpu.max")) {
        std::istringstream fields(*line);
        std::string quota;
        double period = 0;
        if (fields >> quota >> period && quota != "max")
            take_quota(limits, std::strtod(quota.c_str(), nullptr), period);
    }
}

Limits cgroup_limits(const fs::path& root) {
    Limits limits;
    const fs::path mounts = root / "sys/fs/cgroup";
    std::ifstream groups(root / "proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const auto group = line.substr(second + 1);
        if (controllers == ",,")
            for_each_ancestor(mounts, group, [&](const fs::path& directory) { look_v2(limits, directory); });
        if (controllers.find(",memory,") != std::string::npos)
            for_each_ancestor(mounts / "memory", group, [&](const fs::path& directory) {
                limits.memory = std::min(limits.memory, limit_in(directory / "memory.limit_in_bytes"));
            });
        if (controllers.find(",cpu,") != std::string::npos)
            for_each_ancestor(mounts / "cpu", group, [&](const fs::path& directory) {
                const auto quota = first_line(directory / "cpu.cfs_quota_us");
                const auto period = first_line(directory / "cpu.cfs_period_us");
                if (quota && period)
                    take_quota(limits, std::strtod(quota->c_str(), nullptr),
                               std::strtod(period->c_str(), nullptr));
            });
    }
    return limits;
}

std::uint64_t available_memory(const fs::path& root) {
    std::ifstream file(root / "proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("MemAvailable:")) return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
    return unlimited;
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
}

} // namespace

Resources available_resources(const fs::path& root) {
    Resources resources;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const unsigned allowed =
        sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask)) : 1;
    const Limits limits = cgroup_limits(root);
    const double cpus = std::min(static_cast<double>(allowed), limits.cpus);
    resources.cpus = std::max(1U, static_cast<unsigned>(cpus));
    resources.memory = std::min(limits.memory, available_memory(root));
    for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
        resources.in_job = resources.in_job || is_set(variable);
    return resources;
}

unsigned default_jobs(const Resources& resources) {
    const std::uint64_t by_memory = std::max<std::uint64_t>(1, resources.memory / memory_per_job);
    const unsigned cpus = resources.in_job ? resources.cpus : std::min(resources.cpus, most_on_shared_node);
    return static_cast<unsigned>(std::min<std::uint64_t>(cpus, by_memory));
}

void be_polite(const Resources& resources) {
    if (resources.in_job) return;
    // Neither matters enough to fail for.
    [[maybe_unused]] const int priority = setpriority(PRIO_PROCESS, 0, 19);
    constexpr int this_process = 1;
    constexpr int idle_class = 3 << 13;
    [[maybe_unused]] const long io = syscall(SYS_ioprio_set, this_process, 0, idle_class);
}

} // namespace containerize
