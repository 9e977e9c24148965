// The batch systems: one entry for each. Launchers use this, too: constants only.
#pragma once

#include "core/variable_table.h"

#include <array>

namespace containerize {

struct Scheduler {
    const char* name;
    /// The first is set in every job, and has its id; the others tell its parts apart.
    std::array<Variable, 3> variables = {};
    Variable on_nodes = {}; ///< is set, too, on a job's nodes; none: the first variable is enough
    /// What control groups of its jobs have in their paths in front of the job's id.
    std::array<const char*, 3> cgroups = {};
};

// salloc sets SLURM_JOB_ID even in a shell on the login node; SLURMD_NODENAME comes from the compute node's
// daemon. Grid Engine's JOB_ID alone is too common a name. HTCondor gives each job a directory, but no
// variable with its id. Control groups of Slurm and LSF are read in launch/batch_job.cpp.
inline constexpr auto schedulers = std::to_array<Scheduler>({
    {.name = "slurm",
     .variables = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     .on_nodes = "SLURMD_NODENAME"},
    {.name = "pbs",
     .variables = {"PBS_JOBID"},
     .cgroups = {"/pbs_jobs.service/jobid/", "/pbspro/", "/pbspro-"}},
    {.name = "lsf", .variables = {"LSB_JOBID", "LSB_JOBINDEX"}},
    {.name = "ge", .variables = {"JOB_ID", "SGE_TASK_ID"}, .on_nodes = "SGE_TASK_ID", .cgroups = {"/UGE/"}},
    {.name = "flux", .variables = {"FLUX_JOB_ID"}},
    {.name = "oar", .variables = {"OAR_JOB_ID"}, .cgroups = {"/oar/"}},
    {.name = "pjm", .variables = {"PJM_JOBID", "PJM_BULKNUM"}},
    {.name = "condor", .variables = {"_CONDOR_SCRATCH_DIR"}},
});

} // namespace containerize
