#include "environments/accelerators.h"

#include "gpu/fit.h"
#include "util/log.h"

namespace containerize::environments {

void record_accelerators(Workshop& shop) {
    shop.record.erase("accelerators"); // left over from the previous state
    const auto packages = gpu::accelerated_packages(gpu::DirectoryView(shop.root()));
    for (const auto& package : packages) {
        log::detail(package.title() + ": built for " + package.purpose() + " (" + package.evidence + ")");
        shop.record["accelerators"].push_back(gpu::to_json(package));
    }
    std::optional<gpu::Target> target;
    if (const auto& cuda = shop.options.conda.cuda; !cuda.empty())
        target = {.accelerator = gpu::Accelerator::cuda, .toolkit = cuda};
    for (const auto& warning : gpu::build_warnings(packages, target, gpu::discover(gpu::DirectoryView("/"))))
        log::warn(warning);
}

} // namespace containerize::environments
