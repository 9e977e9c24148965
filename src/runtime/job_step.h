// The Slurm job step that this process belongs to: Slurm kills what a step started when the step ends.
#pragma once

#include "util/fd.h"

#include <string>
#include <string_view>

namespace containerize::runtime {

/// "JOB.STEP" from the text of /proc/PID/cgroup, such as "12.0" or "12.batch"; empty if no group in it is a
/// step's.
std::string step_of_cgroups(std::string_view cgroups);

/// A name for this process's step, fit for part of a file name; empty outside of jobs.
std::string job_step();

/// A pidfd of the ancestor that ends with the step or the allocation: slurmstepd, or salloc. None outside of
/// jobs, and before Linux 5.3.
Fd step_process();

} // namespace containerize::runtime
