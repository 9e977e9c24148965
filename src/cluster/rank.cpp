#include "cluster/rank.h"

#include "cluster/affinity.h"
#include "core/cpus.h"
#include "core/ownership.h"
#include "core/variables.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::cluster {

namespace {

Settings where_not_set(const Environment& variables, const Settings& wanted) {
    Settings settings;
    for (const auto& one : wanted)
        if (named_variable(variables, one.first).empty()) settings.push_back(one);
    return settings;
}

Status make_own_directory(const std::string& path) {
    const PrivateUmask whatever_the_callers;
    if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
        return fail_errno("cannot create a directory for caches", path);
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & 0022U) != 0)
        return fail({.what = "cannot use the directory for caches",
                     .why = "it is not a directory that only you can write to",
                     .where = path,
                     .hint = "Remove it, or set TMPDIR to a directory on this node that you own."});
    return {};
}

} // namespace

Machine this_machine() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return {.ports = read_taken_ports(),
            .user = geteuid(),
            .host = host.data(),
            .allowed = allowed_cpus(),
            .near = cpus_by_nearness()};
}

Result<Place> find_place(const Environment& variables, const Machine& machine) {
    auto ranks = TRY(find_ranks(variables));
    auto hosts = TRY(find_hosts(variables, ranks.launcher));
    // An mpirun outside of a batch system does not tell where its first rank is.
    if (hosts.empty() && ranks.size > ranks.local_size && variable(variables, "MASTER_ADDR").empty())
        return fail_input("cannot determine the node of the first rank",
                          "there are ranks on other nodes, and Slurm's variables are not set", {},
                          "Set MASTER_ADDR to the name of that node for all ranks.");
    // MPI helpers run in a step that may lack the first node, so nodes see different step numbers.
    auto common = variables;
    if (ranks.launcher == Launcher::mpi) common.erase("SLURM_STEP_ID");
    auto port = TRY(master_port(common, machine.ports, machine.user));
    return Place{.ranks = ranks,
                 .hosts = hosts,
                 .address = master_address(variables, hosts),
                 .port = port,
                 .job = job_name(common)};
}

Settings rank_settings(const Environment& variables, const Place& place) {
    const auto& ranks = place.ranks;
    return where_not_set(variables, {{"MASTER_ADDR", place.address},
                                     {"MASTER_PORT", std::to_string(place.port)},
                                     {"WORLD_SIZE", std::to_string(ranks.size)},
                                     {"RANK", std::to_string(ranks.rank)},
                                     {"LOCAL_RANK", std::to_string(ranks.local_rank)},
                                     {"LOCAL_WORLD_SIZE", std::to_string(ranks.local_size)},
                                     {"NODE_RANK", std::to_string(ranks.node)}});
}

Settings site_settings(const Environment& variables, const Site& site) {
    return where_not_set(variables, site.environment);
}

Result<Caches> make_caches(const Environment& variables, const Site& site,
                           std::span<const std::string> parents, unsigned user) {
    Caches caches;
    std::vector<std::string> tried;
    std::string own; // the first usable one
    for (const auto& parent : parents) {
        tried.push_back(parent + "/containerize-cache-" + std::to_string(user));
        if (auto made = make_own_directory(tried.back()); !made) {
            caches.refused.push_back(std::move(made.error()));
            continue;
        }
        own = tried.back();
        break;
    }
    for (const auto& [name, subdirectory] : site.caches) {
        const auto given = named_variable(variables, name);
        // If a job script exported our path (from --print), create it on the other nodes, too.
        const bool is_ours = std::ranges::any_of(
            tried, [&](const std::string& directory) { return given == directory + "/" + subdirectory; });
        if (!given.empty() && !is_ours) continue;
        if (own.empty()) {
            if (is_ours) return fail(Error(caches.refused.front())); // its owner would control what is loaded
            continue;
        }
        const auto directory = own + "/" + subdirectory;
        if (auto made = make_own_directory(directory); !made) {
            if (is_ours) return fail(std::move(made.error()));
            caches.refused.push_back(std::move(made.error()));
            continue;
        }
        if (given != directory) caches.settings.emplace_back(name, directory);
    }
    return caches;
}

std::vector<std::string> torchrun_command(const std::string& torchrun, const Environment& variables,
                                          const Place& place, unsigned processes, const std::string& host) {
    std::vector<std::string> words = {torchrun, "--nproc-per-node=" + std::to_string(processes)};
    if (place.hosts.size() < 2) {
        words.emplace_back("--standalone");
        return words;
    }
    // Slurm's name for this node, by which other nodes know it.
    const auto node = variable(variables, "SLURMD_NODENAME");
    words.insert(words.end(),
                 {"--nnodes=" + std::to_string(place.hosts.size()), "--rdzv-id=" + place.job,
                  "--rdzv-backend=c10d",
                  "--rdzv-endpoint=" + place.address + ":" + std::to_string(place.port),
                  // By default torchrun compares host names, which can be written in several ways.
                  std::string("--rdzv-conf=is_host=") + (place.ranks.node == 0 ? "true" : "false"),
                  "--local-addr=" + (node.empty() ? host : node)});
    return words;
}

Result<unsigned> default_processes(const Environment& variables, const Site& site) {
    const auto gpus = TRY(number_in(variables, "SLURM_GPUS_ON_NODE", 0));
    return gpus == 0 ? 1 : gpus * site.devices_per_gpu;
}

} // namespace containerize::cluster
