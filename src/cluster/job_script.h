// Job scripts from templates: text with @NAME@ where something of the job's is put in.
#pragma once

#include "cluster/site.h"
#include "util/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::cluster {

struct JobRequest {
    std::string name;    ///< of the job
    std::string prefix;  ///< of the installation
    std::string program; ///< script and arguments, as a shell reads them
    std::string site;    ///< what the script sets CONTAINERIZE_SITE to, as a shell reads it; empty: nothing
    unsigned nodes = 1;
    unsigned gpus = 0; ///< on each node, as Slurm counts them; without any, one process for each node
};

/// Which template such a job has if nobody says: "single", "standalone" or "torchrun".
std::string default_kind(const JobRequest& request);

/// The template with everything put in. A line that asks Slurm for no GPU is left out. A name that is not
/// known in the template is a failure.
Result<std::string> fill_job_script(std::string_view text, const JobRequest& request, const Site& site);

} // namespace containerize::cluster
