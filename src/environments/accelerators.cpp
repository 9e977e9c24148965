#include "environments/accelerators.h"

#include "gpu/fit.h"
#include "util/log.h"

namespace containerize::environments {

void record_accelerators(BuildContext& context) {
    context.record.erase("accelerators"); // left over from the previous state
    const auto packages = gpu::accelerated_packages(gpu::DirectoryView(context.root()));
    for (const auto& package : packages) {
        log::detail(package.title() + ": built for " + package.purpose() + " (" + package.evidence + ")");
        context.record["accelerators"].push_back(gpu::to_json(package));
    }
    std::optional<gpu::Target> target;
    if (const auto& cuda = context.options.conda.cuda; !cuda.empty())
        target.emplace(gpu::Vendor::nvidia, cuda);
    for (const auto& warning : gpu::build_warnings(packages, target, gpu::discover(gpu::DirectoryView("/"))))
        log::warn(warning);
}

} // namespace containerize::environments
