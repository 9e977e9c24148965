// What this process may use, which on a login node or in a job is less than what the machine has.
#pragma once

#include "util/error.h"

#include <cstdint>
#include <filesystem>

namespace containerize {

struct Resources {
    unsigned cpus = 1; ///< affinity mask and cgroup quota (v1 and v2) together, rounded down, at least 1
    std::uint64_t memory =
        0; ///< bytes that are left: of the limits of cgroups up to the root, and of the machine; the least
    bool in_job = false; ///< inside a batch job (Slurm, PBS, LSF, SGE): the resources are ours
};

/// `root` stands for "/" so that recorded trees can be read in tests.
Resources available_resources(const std::filesystem::path& root = "/");

/// How many workers a build takes by itself: all of a job's CPUs, at most 8 on a shared node, less where
/// memory is short.
unsigned default_jobs(const Resources& resources);

/// Lets this process have `count` files open; its children inherit that. An error if the system's limit
/// (`ulimit -Hn`) is lower.
Status allow_open_files(std::uint64_t count);

/// Outside a job: a low CPU and I/O priority for this process and its children.
void be_polite(const Resources& resources);

} // namespace containerize
