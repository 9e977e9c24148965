// What this process may use, which on a login node or in a job is less than the machine has.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <filesystem>

namespace containerize {

struct Resources {
    unsigned cpus = 1;        ///< by affinity mask and cgroup quota (v1 and v2), rounded down, at least 1
    std::uint64_t memory = 0; ///< bytes left by the limits of all enclosing cgroups, and in the machine
    bool in_job = false;      ///< inside a batch job (schedulers.h): the resources are ours
};

/// `root` replaces "/", for tests with recorded trees.
Resources available_resources(const std::filesystem::path& root = "/");

/// The default number of a build's workers: all of a job's CPUs, at most 8 on a shared node, fewer if memory
/// is short.
unsigned default_jobs(const Resources& resources);

/// Lets this process and its children have `count` files open. Fails if the hard limit (`ulimit -Hn`) is
/// lower.
Status allow_open_files(std::uint64_t count);

/// Outside of a job, gives this process and its children a low CPU and I/O priority.
void lower_priority(const Resources& resources);

} // namespace containerize
