// Makes job scripts from templates, in which @NAME@ stands for a value.
#pragma once

#include "cluster/site.h"
#include "core/error.h"

#include <string>
#include <string_view>

namespace containerize::cluster {

struct JobRequest {
    std::string name;    ///< of the job
    std::string prefix;  ///< of the installation
    std::string program; ///< script and arguments, quoted for a shell
    std::string site;    ///< for CONTAINERIZE_SITE, quoted for a shell; empty: not set
    unsigned nodes = 1;
    unsigned gpus = 0; ///< per node, as Slurm counts them; 0: one process per node
};

/// Returns the default template for the request: "single", "standalone" or "torchrun".
std::string default_kind(const JobRequest& request);

/// Fills in the template. Drops lines that would request 0 GPUs. Fails if the template has an unknown @NAME@.
Result<std::string> fill_job_script(std::string_view text, const JobRequest& request, const Site& site);

} // namespace containerize::cluster
