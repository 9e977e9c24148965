// The environment variables in which a batch system, or anybody else, describes the nodes of a job.
#include "cluster/slurm_lists.h"
#include "harness.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    if (const auto hosts = cluster::expand_host_list(text); fuzz::good_input(hosts))
        fuzz::require(!hosts->empty() && hosts->size() <= 1'000'000);
    if (const auto tasks = cluster::expand_tasks_per_node(text); fuzz::good_input(tasks))
        fuzz::require(tasks->size() <= 1'000'000);
    return 0;
}
