#include "environments/conda_packages.h"

#include "conda/package_cache.h"
#include "core/version.h"
#include "util/log.h"

#include <utility>

#include <fmt/format.h>

namespace containerize::environments {

Result<std::vector<conda::PackageToLink>> fetch_packages(const BuildContext& context, const CondaPlan& plan) {
    const auto& config = context.inputs.conda_config;
    auto archives = conda::fetch_packages(plan.packages, plan.channels, config,
                                          {.cache = plan.cache,
                                           .offline = context.options.conda.offline || config.offline,
                                           .allow_unverified = plan.locked,
                                           .umask_bits = context.options.umask_bits});
    if (!archives) return fail(with_list(std::move(archives.error()), context.inputs));
    std::vector<conda::PackageToLink> packages;
    for (std::size_t i = 0; i < plan.packages.size(); ++i) {
        const auto requested = plan.requested.find(plan.packages[i].name);
        packages.push_back({.record = plan.packages[i],
                            .archive = std::move((*archives)[i]),
                            .requested = requested == plan.requested.end() ? std::vector<std::string>()
                                                                           : requested->second});
    }
    return packages;
}

Result<std::vector<conda::PackageInfo>> read_packages(const BuildContext& context,
                                                      const std::vector<conda::PackageToLink>& packages) {
    auto infos = conda::read_packages(packages, context.jobs);
    if (!infos) return fail(with_list(std::move(infos.error()), context.inputs));
    return infos;
}

Result<conda::Linked> link_packages(const BuildContext& context,
                                    const std::vector<conda::PackageToLink>& packages,
                                    std::vector<conda::PackageInfo> infos, conda::LinkOptions options,
                                    image::Writer& writer, Stage& stage) {
    options.jobs = context.jobs;
    options.memory = context.memory_of_writer();
    options.umask_bits = context.options.umask_bits;
    options.tool_version = this_version;
    auto linked = conda::link_packages(packages, std::move(infos), options, writer,
                                       [&stage](std::uint64_t done) { stage.advance(done, 0); });
    if (linked)
        for (const auto& warning : linked->warnings)
            log::warn(warning);
    return linked;
}

std::string summary_of(const conda::Linked& linked) {
    return fmt::format("{}, {}, {}", counted(linked.records.size(), "package"), counted(linked.files, "file"),
                       human_bytes(linked.bytes));
}

} // namespace containerize::environments
