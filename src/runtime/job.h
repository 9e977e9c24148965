// The job that this process belongs to, whatever runs the jobs of the site. Batch systems kill what a job has
// started when it ends, and so may systemd-logind (logind.h).
#pragma once

#include "util/fd.h"

#include <string>
#include <string_view>

namespace containerize::runtime {

/// The text of /proc/self/cgroup.
std::string own_cgroups();

/// "slurm-12.0" or "pbs-7.server" from such a text; empty if no group in it is a job's.
std::string job_of_cgroups(std::string_view cgroups);

/// A name for this process's job (for Slurm, its step), fit for part of a file name; empty outside of jobs.
std::string job_of_this_process(std::string_view cgroups);

/// "session-5", the login that systemd-logind counts the process to; empty if it is of none.
std::string login_of_cgroups(std::string_view cgroups);

/// A pidfd of the ancestor that ends with the step or the allocation: slurmstepd, or salloc. None outside of
/// Slurm's jobs, and before Linux 5.3.
Fd step_process();

} // namespace containerize::runtime
