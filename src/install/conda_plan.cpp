#include "install/conda_plan.h"

#include "conda/repodata.h"
#include "conda/solver.h"
#include "conda/virtual_packages.h"
#include "util/log.h"
#include "util/progress.h"
#include "util/url.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace containerize::install {

namespace {

std::vector<conda::Located> channels_of_packages(const spec::CondaEnvironment& environment) {
    std::vector<conda::Located> channels;
    for (const auto& dependency : environment.dependencies)
        if (!dependency.spec.channel.empty())
            channels.push_back({.text = dependency.spec.channel, .where = dependency.where});
    return channels;
}

/// The canonical URLs of what a spec names as its channel; none if it names none.
Result<std::vector<std::string>> channel_urls(const spec::CondaDependency& dependency,
                                              const std::vector<conda::Channel>& channels,
                                              const conda::Config& config) {
    const auto& asked = dependency.spec.channel;
    std::vector<std::string> urls;
    if (asked.empty()) return urls;
    for (const auto& channel : channels)
        if (conda::is_channel(asked, channel.url, config)) urls.push_back(channel.url);
    if (!urls.empty()) return urls;
    return fail_input("the channel of this package is not among those that may be used",
                      without_credentials(asked), dependency.where, "Name another channel, or leave it out.");
}

Result<conda::SolveRequest> make_request(const Inputs& inputs, const std::vector<conda::Channel>& channels) {
    const auto& config = inputs.conda_config;
    conda::SolveRequest request;
    request.priority = inputs.conda->channel_priority.value_or(config.channel_priority);
    for (const auto& dependency : inputs.conda->dependencies) {
        auto urls = channel_urls(dependency, channels, config);
        if (!urls) return fail(std::move(urls.error()));
        request.wanted.push_back(
            {.spec = dependency.spec, .channels = std::move(*urls), .where = dependency.where});
    }
    // pip itself comes with what it shall install.
    const auto asks_for = [&](const char* name) {
        return std::ranges::any_of(request.wanted, [name](const auto& one) { return one.spec.name == name; });
    };
    if (!inputs.conda->pip.empty())
        for (const char* name : {"python", "pip"})
            if (!asks_for(name))
                if (auto spec = conda::parse_match_spec(name))
                    request.wanted.push_back(
                        {.spec = std::move(*spec), .channels = {}, .where = inputs.spec.string()});
    for (const auto& pin : config.pinned_packages) {
        auto spec = conda::parse_match_spec(pin.text);
        if (!spec) {
            spec.error().where = pin.where;
            return fail(std::move(spec.error()));
        }
        request.pins.push_back(std::move(*spec));
    }
    return request;
}

std::string names_of(const std::vector<conda::Channel>& channels) {
    std::string names;
    for (const auto& channel : channels)
        names += (names.empty() ? "" : ", ") + channel.name;
    return names;
}

Result<CondaPlan> solve(const BuildOptions& options, const Inputs& inputs,
                        const std::filesystem::path& cache) {
    const auto& config = inputs.conda_config;
    for (const auto& note : inputs.conda->notes)
        log::info("Note: " + note);
    auto asked = inputs.conda->channels;
    auto effective = config;
    if (inputs.conda->no_defaults) effective.channels.clear();
    auto choice = conda::choose_channels(asked, channels_of_packages(*inputs.conda), effective,
                                         options.conda.allow_defaults);
    if (!choice) return fail(std::move(choice.error()));
    for (const auto& note : choice->notes)
        log::info("Note: " + note);

    CondaPlan plan;
    plan.channels = std::move(choice->channels);
    auto request = make_request(inputs, plan.channels);
    if (!request) return fail(std::move(request.error()));
    for (const auto& wanted : request->wanted)
        plan.requested.emplace(wanted.spec.name, wanted.spec.to_string());
    if (request->wanted.empty()) return plan;
    auto machine = conda::virtual_packages(inputs.environment, options.conda.cuda);
    if (!machine) return fail(std::move(machine.error()));
    for (const auto& package : *machine)
        log::detail(fmt::format("this machine: {} {} {}", package.name, package.version, package.build));

    auto lists = conda::fetch_repodata(plan.channels, {conda::this_subdir(), "noarch"}, config,
                                       {.cache = cache, .offline = options.conda.offline || config.offline});
    if (!lists) return fail(std::move(lists.error()));
    Stage stage("Solving");
    auto pool = conda::PackagePool::load(*lists, *machine);
    if (!pool) return fail(std::move(pool.error()));
    stage.detail(human_count(pool->size()) + " packages");
    auto solved = conda::solve(*pool, std::move(*request));
    if (!solved) return fail(std::move(solved.error()));
    plan.packages = std::move(*solved);
    stage.finish(fmt::format("{} of {} packages, from {}", human_count(plan.packages.size()),
                             human_count(pool->size()), names_of(plan.channels)));
    return plan;
}

/// Where the packages of a list come from, each place once.
std::vector<conda::Located> channels_of_list(const Inputs& inputs) {
    std::set<std::string> urls;
    for (const auto& record : inputs.locked->packages)
        urls.insert(record.channel.empty() ? record.url.substr(0, record.url.rfind('/')) : record.channel);
    std::vector<conda::Located> channels;
    for (const auto& url : urls)
        channels.push_back({.text = url, .where = inputs.spec.string()});
    return channels;
}

Result<CondaPlan> take_list(const Inputs& inputs) {
    for (const auto& note : inputs.locked->notes)
        log::info("Note: " + note);
    auto notes = conda::check_listed_channels(channels_of_list(inputs), inputs.conda_config);
    if (!notes) return fail(std::move(notes.error()));
    for (const auto& note : *notes)
        log::info("Note: " + note);
    CondaPlan plan;
    plan.locked = true;
    plan.packages = inputs.locked->packages;
    plan.requested = inputs.locked->requested;
    return plan;
}

} // namespace

Result<CondaPlan> plan_conda(const BuildOptions& options, const Inputs& inputs,
                             const std::filesystem::path& cache) {
    auto plan = inputs.locked ? take_list(inputs) : solve(options, inputs, cache);
    if (plan)
        for (const auto& record : plan->packages)
            log::detail(record.distribution() + " of " + record.channel);
    return plan;
}

} // namespace containerize::install
