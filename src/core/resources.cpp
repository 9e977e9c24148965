#include "core/resources.h"

#include "core/filesystem.h"
#include "core/schedulers.h"
#include "core/variables.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize {

namespace {

constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::string> first_line(const fs::path& file) {
    std::ifstream stream(file);
    std::string line;
    if (!std::getline(stream, line)) return std::nullopt;
    return line;
}

/// The number at the start of `text`; nullopt for "max", "-1" and the like.
std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    std::istringstream stream{std::string(text)};
    if (text.starts_with('-') || !(stream >> number)) return std::nullopt;
    return number;
}

std::optional<std::uint64_t> number_in_file(const fs::path& file) {
    const auto line = first_line(file);
    return line ? number_in(*line) : std::nullopt;
}

/// The value of "KEY:   VALUE" in a file such as /proc/meminfo.
std::optional<std::string> field(const fs::path& file, std::string_view key) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
        if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
            const auto value = line.find_first_not_of(" \t", key.size() + 1);
            return value == std::string::npos ? "" : line.substr(value);
        }
    return std::nullopt;
}

/// "0-3,8,10-11" has seven. From /proc, because sched_getaffinity() needs a mask as large as the kernel was
/// built for.
unsigned cpus_in_list(std::string_view list) {
    unsigned count = 0;
    std::istringstream ranges{std::string(list)};
    for (std::string range; std::getline(ranges, range, ',');) {
        const auto first = number_in(range);
        const auto dash = range.find('-');
        const auto last =
            dash == std::string::npos ? first : number_in(std::string_view(range).substr(dash + 1));
        if (first && last && *last >= *first) count += static_cast<unsigned>(*last - *first + 1);
    }
    return count;
}

struct Limits {
    std::uint64_t memory = unlimited;
    double cpus = std::numeric_limits<double>::infinity();

    void memory_at_most(std::optional<std::uint64_t> bytes) {
        memory = std::min(memory, bytes.value_or(memory));
    }
    void quota(std::optional<std::uint64_t> time, std::optional<std::uint64_t> period) {
        if (time && period && *period > 0)
            cpus = std::min(cpus, static_cast<double>(*time) / static_cast<double>(*period));
    }
};

/// A mounted cgroup hierarchy.
struct Hierarchy {
    bool v2 = false;
    std::string controllers; ///< for v1: ",cpu,cpuacct,"
    fs::path mount_point;
    std::string root; ///< the cgroup at the mount point
};

std::vector<Hierarchy> hierarchies(const fs::path& root) {
    std::vector<Hierarchy> found;
    for (const auto& mounted : mounted_filesystems(root / "proc"))
        if (mounted.type == "cgroup" || mounted.type == "cgroup2")
            found.push_back({.v2 = mounted.type == "cgroup2",
                             .controllers = "," + mounted.options + ",",
                             .mount_point = root / fs::path(mounted.point).relative_path(),
                             .root = mounted.root});
    return found;
}

/// The directory of this process's cgroup. In a container only its own cgroup may be mounted, while /proc
/// still names the path from the host's root.
fs::path directory_of(const Hierarchy& hierarchy, std::string_view cgroup) {
    const std::string_view root = hierarchy.root == "/" ? "" : std::string_view(hierarchy.root);
    if (!cgroup.starts_with(root) || cgroup.find("..") != std::string_view::npos)
        return hierarchy.mount_point;
    return hierarchy.mount_point / fs::path(cgroup.substr(root.size())).relative_path();
}

/// The memory that a cgroup uses, without the page cache, which the kernel can drop. `keys` are the fields of
/// memory.stat that add up to it.
std::uint64_t used(const fs::path& directory, const char* usage, std::array<std::string_view, 2> keys) {
    const auto all = number_in_file(directory / usage).value_or(0);
    std::uint64_t of_files = 0;
    std::ifstream stream(directory / "memory.stat");
    for (std::string line; std::getline(stream, line);) {
        const auto space = std::min(line.find(' '), line.size());
        if (std::ranges::find(keys, std::string_view(line).substr(0, space)) != keys.end())
            of_files += number_in(std::string_view(line).substr(space)).value_or(0);
    }
    return all - std::min(all, of_files);
}

std::optional<std::uint64_t> left_of(std::optional<std::uint64_t> limit, std::uint64_t used) {
    return limit ? std::optional(*limit - std::min(*limit, used)) : std::nullopt;
}

void read_v2(const fs::path& directory, Limits& limits) {
    // Above "high" a process is not killed, but slowed to a crawl.
    const auto limit = number_in_file(directory / "memory.max"),
               high = number_in_file(directory / "memory.high");
    if (limit || high) {
        const auto in_use = used(directory, "memory.current", {"inactive_file", "active_file"});
        limits.memory_at_most(left_of(limit, in_use));
        limits.memory_at_most(left_of(high, in_use));
    }
    if (const auto line = first_line(directory / "cpu.max"))
        limits.quota(number_in(*line),
                     number_in(std::string_view(*line).substr(std::min(line->find(' '), line->size()))));
}

void read_v1(const fs::path& directory, Limits& limits) {
    if (const auto limit = number_in_file(directory / "memory.limit_in_bytes"))
        limits.memory_at_most(left_of(
            limit, used(directory, "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"})));
    limits.quota(number_in_file(directory / "cpu.cfs_quota_us"),
                 number_in_file(directory / "cpu.cfs_period_us"));
}

/// A limit applies to everything below, so that each directory up to the mount point counts: Slurm sets those
/// of a job two levels above its processes.
void read_up_to_root(const Hierarchy& hierarchy, std::string_view cgroup, Limits& limits) {
    for (auto directory = directory_of(hierarchy, cgroup);; directory = directory.parent_path()) {
        if (hierarchy.v2)
            read_v2(directory, limits);
        else
            read_v1(directory, limits);
        if (directory == hierarchy.mount_point || directory == directory.parent_path()) return;
    }
}

Limits cgroup_limits(const fs::path& root) {
    Limits limits;
    const auto mounted = hierarchies(root);
    std::ifstream cgroups(root / "proc/self/cgroup");
    // "ID:CONTROLLERS:PATH", with "0::PATH" for v2.
    for (std::string line; std::getline(cgroups, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const auto controllers = line.substr(first + 1, second - first - 1);
        const auto path = std::string_view(line).substr(second + 1);
        for (const auto& hierarchy : mounted) {
            const bool same = controllers.empty()
                                  ? hierarchy.v2
                                  : !hierarchy.v2 && hierarchy.controllers.find("," + controllers + ",") !=
                                                         std::string::npos;
            if (same) read_up_to_root(hierarchy, path, limits);
        }
    }
    return limits;
}

bool in_batch_job() {
    const auto set = [](Variable one) { return !one || value_of(one) != nullptr; };
    return std::ranges::any_of(schedulers, [&](const Scheduler& scheduler) {
        return set(scheduler.variables.front()) && set(scheduler.on_nodes);
    });
}

} // namespace

Resources available_resources(const fs::path& root) {
    const auto limits = cgroup_limits(root);
    Resources resources;
    const auto allowed = field(root / "proc/self/status", "Cpus_allowed_list");
    const double cpus = std::min(limits.cpus, static_cast<double>(allowed ? cpus_in_list(*allowed) : 1));
    resources.cpus = std::max(1U, static_cast<unsigned>(cpus));
    const auto available = field(root / "proc/meminfo", "MemAvailable");
    const auto kibibytes = available ? number_in(*available) : std::nullopt;
    resources.memory = std::min(limits.memory, kibibytes ? *kibibytes * 1024 : unlimited);
    resources.in_job = in_batch_job();
    return resources;
}

unsigned default_jobs(const Resources& resources) {
    // Enough for a compressing thread with its blocks, or for a compiler that pip starts.
    constexpr std::uint64_t memory_of_a_worker = std::uint64_t{512} << 20U;
    constexpr unsigned most_on_shared_node = 8;
    const unsigned cpus = resources.in_job ? resources.cpus : std::min(resources.cpus, most_on_shared_node);
    const auto by_memory = std::max<std::uint64_t>(1, resources.memory / memory_of_a_worker);
    return static_cast<unsigned>(std::min<std::uint64_t>(cpus, by_memory));
}

Status allow_open_files(std::uint64_t count) {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= count) return {};
    if (files.rlim_max < count)
        return fail({.what = "the limit of open files is too low",
                     .why = "it must be at least " + std::to_string(count) + ", and it is " +
                            std::to_string(files.rlim_max),
                     .hint = "`ulimit -Hn` shows the limit. An administrator can raise it."});
    files.rlim_cur = count;
    if (setrlimit(RLIMIT_NOFILE, &files) == 0) return {};
    return fail_errno("cannot raise the limit of open files", {});
}

void lower_priority(const Resources& resources) {
    if (resources.in_job) return;
    // Failures do not matter. Nice 10 leaves a tenth of what others get; at 19, a build of four seconds took
    // eight minutes beside two compilers.
    setpriority(PRIO_PROCESS, 0, 10);
    // The C library has no ioprio_set(): 1 is IOPRIO_WHO_PROCESS, and 2 << 13 | 7 the lowest best-effort
    // priority (linux/ioprio.h).
    syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 7);
}

} // namespace containerize
