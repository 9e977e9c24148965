#include "install/conda_plan.h"

#include "conda/repodata.h"
#include "conda/repodata_index.h"
#include "conda/solver.h"
#include "conda/virtual_packages.h"
#include "gpu/c_library.h"
#include "install/base.h"
#include "util/filesystem.h"
#include "util/log.h"
#include "util/progress.h"
#include "util/url.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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

/// What is installed, in the form in which channels list their packages.
Result<std::optional<conda::Repodata>> list_installed(const std::vector<conda::InstalledPackage>& installed,
                                                      const std::filesystem::path& directory) {
    if (installed.empty()) return std::nullopt;
    nlohmann::json packages = nlohmann::json::object();
    for (const auto& one : installed) {
        auto entry = conda::to_json(one.record);
        entry["channel"] = one.record.channel;
        packages[one.record.distribution() + ".conda"] = std::move(entry);
    }
    conda::Repodata list;
    list.channel.name = "installed";
    list.json = directory / "installed.json";
    const nlohmann::json root = {{"packages.conda", std::move(packages)}};
    if (auto written =
            write_file(list.json, root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        !written)
        return fail(std::move(written.error()));
    return list;
}

// What was asked for before stays asked for, unless the input asks for another version of it.
void keep_earlier_requests(const std::vector<conda::InstalledPackage>& installed,
                           conda::SolveRequest& request, conda::Requests& requested) {
    std::set<std::string> asked;
    for (const auto& one : request.wanted)
        asked.insert(one.spec.name);
    for (const auto& one : installed) {
        if (asked.contains(one.record.name)) continue;
        auto requests = one.requested;
        // Another version of it may come; that was asked for, too.
        if (!requests.empty()) requested.emplace(one.record.name, requests);
        if (requests.empty()) requests.push_back(one.record.name);
        for (const auto& text : requests) {
            auto spec = conda::parse_match_spec(text);
            // A spec that conda understands and we do not: then any version.
            if (!spec || spec->name != one.record.name) spec = conda::parse_match_spec(one.record.name);
            if (!spec) continue;
            spec->channel.clear();
            request.wanted.push_back({.spec = std::move(*spec), .channels = {}, .where = {}});
        }
    }
}

struct Solved {
    CondaPlan plan;
    std::vector<std::string> removed; ///< names
};

/// `directory` is for files of ours.
Result<Solved> solve(const BuildOptions& options, const Inputs& inputs, const std::filesystem::path& cache,
                     const std::vector<conda::InstalledPackage>& installed, bool prune,
                     const std::filesystem::path& directory) {
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

    Solved result;
    auto& plan = result.plan;
    plan.channels = std::move(choice->channels);
    auto request = make_request(inputs, plan.channels);
    if (!request) return fail(std::move(request.error()));
    for (const auto& wanted : request->wanted)
        plan.requested[wanted.spec.name].push_back(wanted.spec.to_string());
    if (!prune) keep_earlier_requests(installed, *request, plan.requested);
    if (request->wanted.empty()) return result;
    std::optional<std::string> glibc;
    if (!inputs.base.is_host()) {
        const auto base = open_tree(inputs.base);
        if (!base) return fail(Error(base.error()));
        glibc = gpu::glibc_version(**base);
    }
    auto machine = conda::virtual_packages(inputs.environment, options.conda.cuda, glibc);
    if (!machine) return fail(std::move(machine.error()));
    for (const auto& package : *machine)
        log::detail(fmt::format("this machine: {} {} {}", package.name, package.version, package.build));

    auto lists = conda::fetch_repodata(plan.channels, {conda::this_subdir(), "noarch"}, config,
                                       {.cache = cache, .offline = options.conda.offline || config.offline});
    if (!lists) return fail(std::move(lists.error()));
    Stage stage("Solving");
    auto present = list_installed(installed, directory);
    if (!present) return fail(std::move(present.error()));
    auto pool = conda::PackagePool::load(*lists, conda::names_in(*request), *machine,
                                         *present ? &**present : nullptr);
    if (!pool) return fail(std::move(pool.error()));
    stage.detail(human_count(pool->size()) + " packages");
    auto solved = conda::solve(*pool, std::move(*request));
    if (!solved) return fail(std::move(solved.error()));
    plan.packages = std::move(solved->install);
    result.removed = std::move(solved->remove);
    stage.finish(fmt::format("{} of {} packages, from {}", human_count(plan.packages.size()),
                             human_count(pool->size()), names_of(plan.channels)));
    return result;
}

void log_packages(const CondaPlan& plan) {
    for (const auto& record : plan.packages)
        log::detail(record.distribution() + " of " + record.channel);
}

/// The installed packages that nothing in `wanted` needs, given what else there will be.
std::set<std::string> not_needed(const std::vector<const conda::PackageRecord*>& present,
                                 const conda::Requests& wanted) {
    std::map<std::string, const conda::PackageRecord*> by_name;
    for (const auto* record : present)
        by_name.emplace(record->name, record);
    std::vector<std::string> next;
    for (const auto& [name, specs] : wanted)
        next.push_back(name);
    // With Python comes pip, as for a new environment.
    if (wanted.contains("python")) next.emplace_back("pip");
    while (!next.empty()) {
        const auto found = by_name.find(next.back());
        next.pop_back();
        if (found == by_name.end()) continue;
        for (const auto& dependency : found->second->depends)
            next.push_back(conda::name_of_dependency(dependency));
        by_name.erase(found);
    }
    std::set<std::string> names;
    for (const auto& [name, record] : by_name)
        names.insert(name);
    return names;
}

// Of another Python, packages lie elsewhere, also those that fit any.
void relink_for_new_python(const std::vector<conda::InstalledPackage>& installed, CondaChanges& changes) {
    const auto minor = [](const std::string& version) {
        return version.substr(0, version.find('.', version.find('.') + 1));
    };
    const auto is_python = [](const auto& record) { return record.name == "python"; };
    const auto before = std::ranges::find_if(installed, is_python, &conda::InstalledPackage::record);
    const auto after = std::ranges::find_if(changes.plan.packages, is_python);
    if (before == installed.end() || after == changes.plan.packages.end() ||
        minor(before->record.version) == minor(after->version))
        return;
    std::set<std::string> removed;
    for (const auto& one : changes.removed)
        removed.insert(one.record.name);
    for (const auto& one : installed) {
        if (one.record.noarch != conda::Noarch::python || removed.contains(one.record.name)) continue;
        changes.plan.packages.push_back(one.record);
        if (!one.requested.empty()) changes.plan.requested.emplace(one.record.name, one.requested);
        changes.removed.push_back(one);
    }
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
    auto plan = [&]() -> Result<CondaPlan> {
        if (inputs.locked) return take_list(inputs);
        auto solved = solve(options, inputs, cache, {}, false, {});
        if (!solved) return fail(std::move(solved.error()));
        return std::move(solved->plan);
    }();
    if (plan) log_packages(*plan);
    return plan;
}

Result<CondaChanges> plan_conda_changes(const BuildOptions& options, const Inputs& inputs,
                                        const std::filesystem::path& cache,
                                        const std::vector<conda::InstalledPackage>& installed, bool prune,
                                        const std::filesystem::path& directory) {
    CondaChanges changes;
    std::set<std::string> removed; ///< names
    if (inputs.locked) {
        auto listed = take_list(inputs);
        if (!listed) return fail(std::move(listed.error()));
        changes.plan = std::move(*listed);
        std::set<std::string> there;
        for (const auto& one : installed) {
            const auto same = std::ranges::find_if(changes.plan.packages, [&](const auto& record) {
                return record.distribution() == one.record.distribution();
            });
            if (same == changes.plan.packages.end())
                removed.insert(one.record.name);
            else
                there.insert(one.record.distribution());
        }
        std::erase_if(changes.plan.packages,
                      [&](const auto& record) { return there.contains(record.distribution()); });
    } else {
        auto solved = solve(options, inputs, cache, installed, prune, directory);
        if (!solved) return fail(std::move(solved.error()));
        changes.plan = std::move(solved->plan);
        removed.insert(solved->removed.begin(), solved->removed.end());
        if (prune) {
            std::vector<const conda::PackageRecord*> present;
            for (const auto& record : changes.plan.packages)
                present.push_back(&record);
            for (const auto& one : installed)
                if (!removed.contains(one.record.name)) present.push_back(&one.record);
            removed.merge(not_needed(present, changes.plan.requested));
        }
    }
    for (const auto& one : installed)
        if (removed.contains(one.record.name)) changes.removed.push_back(one);
    relink_for_new_python(installed, changes);
    for (const auto& one : changes.removed)
        log::detail("without " + one.record.distribution());
    log_packages(changes.plan);
    return changes;
}

} // namespace containerize::install
