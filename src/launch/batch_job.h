// The batch job that this process belongs to, for any batch system. Batch systems kill what a job has started
// when it ends; so does systemd with a service, and systemd-logind may do so at logout (logind.h).
#pragma once

#include "core/fd.h"

#include <string>
#include <string_view>

namespace containerize::launch {

/// The text of /proc/self/cgroup.
std::string own_cgroups();

/// "slurm-12.0" or "pbs-7.server" from such a text; empty if it names no job's cgroup.
std::string job_of_cgroups(std::string_view cgroups);

/// Identifies this process's job (for Slurm, its step), or else its service of systemd, fit for a file name;
/// empty outside of both. `cgroups` is own_cgroups().
std::string job_of_this_process(std::string_view cgroups);

/// "session-5", the process's login session in systemd-logind; empty if there is none.
std::string login_of_cgroups(std::string_view cgroups);

/// A pidfd of the ancestor that ends with the job step or the allocation: slurmstepd or salloc. No descriptor
/// outside of Slurm jobs, and before Linux 5.3.
Fd step_process();

} // namespace containerize::launch
