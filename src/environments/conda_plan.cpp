#include "environments/conda_plan.h"

#include "conda/cache_directory.h"
#include "conda/repodata.h"
#include "conda/repodata_index.h"
#include "conda/solver.h"
#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "root/root.h"
#include "spec/pixi_platform.h"
#include "util/log.h"
#include "util/progress.h"
#include "util/timings.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::environments {

namespace {

std::vector<Located> channels_of_packages(std::vector<spec::CondaDependency> dependencies,
                                          const std::vector<spec::CondaDependency>& earlier) {
    dependencies.insert(dependencies.end(), earlier.begin(), earlier.end());
    std::vector<Located> channels;
    for (const auto& dependency : dependencies)
        if (!dependency.spec.channel.empty())
            channels.push_back({.text = dependency.spec.channel, .where = dependency.where});
    return channels;
}

/// The URLs of the channel that a spec names; empty if it names none, an input error if `channels` lacks it.
Result<std::vector<std::string>> channel_urls(const spec::CondaDependency& dependency,
                                              const std::vector<conda::Channel>& channels,
                                              const conda::Config& config) {
    const auto& asked = dependency.spec.channel;
    std::vector<std::string> urls;
    if (asked.empty()) return urls;
    for (const auto& channel : channels)
        if (conda::is_channel(asked, channel.url, config)) urls.push_back(channel.url);
    if (!urls.empty()) return urls;
    return fail_input("this package's channel is not in the list of channels", without_credentials(asked),
                      dependency.where,
                      "Add the channel to the list, or remove it from the package specification.");
}

Result<conda::MatchSpec> parse_located(const Located& given) {
    auto spec = conda::parse_match_spec(given.text);
    if (!spec) spec.error().where = given.where;
    return spec;
}

Status add_pins(const std::vector<Located>& pins, conda::SolveRequest& request) {
    for (const auto& pin : pins) {
        auto spec = TRY(parse_located(pin));
        if (!spec.channel.empty())
            log::warn(fmt::format("{}: the channel of the pin '{}' is ignored", pin.where, spec.text));
        request.pins.push_back({.spec = std::move(spec), .channels = {}, .where = pin.where});
    }
    return {};
}

Result<conda::SolveRequest> make_request(const inputs::Inputs& inputs,
                                         const std::vector<conda::Channel>& channels) {
    const auto& config = inputs.conda_config;
    conda::SolveRequest request;
    request.priority = inputs.conda->channel_priority.value_or(config.channel_priority);
    for (const auto& dependency : inputs.conda->dependencies) {
        auto urls = TRY(channel_urls(dependency, channels, config));
        request.wanted.push_back(
            {.spec = dependency.spec, .channels = std::move(urls), .where = dependency.where});
    }
    for (const auto& constraint : inputs.conda->constraints)
        request.pins.push_back({.spec = constraint.spec, .channels = {}, .where = constraint.where});
    // pip requirements need pip, and therefore Python, in the environment.
    const auto asks_for = [&](const char* name) {
        return std::ranges::any_of(request.wanted, [name](const auto& one) { return one.spec.name == name; });
    };
    if (!inputs.conda->pip.empty())
        for (const char* name : {"python", "pip"})
            if (!asks_for(name))
                if (auto spec = conda::parse_match_spec(name))
                    request.wanted.push_back(
                        {.spec = std::move(*spec), .channels = {}, .where = inputs.spec.string()});
    request.pip_with_python = config.pip_with_python;
    TRY(add_pins(config.pinned_packages, request));
    return request;
}

/// Adds default_packages of conda's configuration, except those that the input requests itself.
Status add_default_packages(const conda::Config& config, const std::vector<conda::Channel>& channels,
                            conda::SolveRequest& request) {
    std::set<std::string> asked;
    for (const auto& one : request.wanted)
        asked.insert(one.spec.name);
    for (const auto& one : config.default_packages) {
        auto spec = TRY(parse_located(one));
        if (asked.contains(spec.name)) continue;
        auto urls = TRY(channel_urls({.spec = spec, .where = one.where}, channels, config));
        request.wanted.push_back({.spec = std::move(spec), .channels = std::move(urls), .where = one.where});
    }
    return {};
}

/// Fails with an input error if a package matches disallowed_packages.
Status check_allowed(const std::vector<conda::PackageRecord>& packages, const conda::Config& config) {
    for (const auto& one : config.disallowed_packages) {
        const auto spec = TRY(parse_located(one));
        for (const auto& record : packages)
            if (spec.matches(record))
                return fail_input("this package is not allowed: " + record.distribution(),
                                  "disallowed_packages in conda's configuration contains '" + spec.text + "'",
                                  one.where, "Request another version, or packages that do not need it.");
    }
    return {};
}

/// The installed packages as repodata, in the format of a channel; nothing if there are none.
Result<std::optional<conda::Repodata>> list_installed(const std::vector<conda::InstalledPackage>& installed,
                                                      const std::filesystem::path& directory) {
    if (installed.empty()) return std::nullopt;
    nlohmann::json packages = nlohmann::json::object();
    for (const auto& one : installed) {
        auto entry = conda::to_json(one.record);
        entry["channel"] = one.record.channel;
        const auto& file = one.record.file_name; // the file name that a spec with `fn=` matches
        const bool known = conda::parse_file_name(file) && file.find('/') == std::string::npos;
        packages[known ? file : one.record.distribution() + ".conda"] = std::move(entry);
    }
    conda::Repodata list;
    list.channel.name = "installed";
    const auto file = directory / "installed.json";
    const nlohmann::json root = {{"packages.conda", std::move(packages)}};
    TRY(write_file(file, root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    list.json = TRY(OpenFile::open(file));
    return list;
}

// Earlier requests remain in force unless the input has a spec for the same package.
std::vector<spec::CondaDependency> earlier_requests(const std::vector<conda::InstalledPackage>& installed,
                                                    const spec::CondaEnvironment& environment) {
    std::set<std::string> asked;
    for (const auto& one : environment.dependencies)
        asked.insert(one.spec.name);
    std::vector<spec::CondaDependency> earlier;
    for (const auto& one : installed) {
        if (asked.contains(one.record.name)) continue;
        auto requests = one.requested;
        if (requests.empty()) requests.push_back(one.record.name);
        for (const auto& text : requests) {
            auto spec = conda::parse_match_spec(text);
            // Accept any version if our parser rejects a spec that conda understood.
            if (!spec || spec->name != one.record.name) spec = conda::parse_match_spec(one.record.name);
            if (spec)
                earlier.push_back(
                    {.spec = std::move(*spec), .where = "conda-meta/" + one.record_file.filename().string()});
        }
    }
    return earlier;
}

/// Keeps the earlier channel even if it may not be used for new packages: installed packages may stay.
Status add_earlier(const std::vector<spec::CondaDependency>& earlier,
                   const std::vector<conda::Channel>& channels, const conda::Config& config,
                   conda::SolveRequest& request) {
    for (const auto& one : earlier) {
        auto urls = channel_urls(one, channels, config);
        if (!urls) {
            const auto before =
                TRY(conda::resolve_channel({.text = one.spec.channel, .where = one.where}, config));
            urls.emplace();
            for (const auto& channel : before)
                urls->push_back(channel.url);
        }
        request.wanted.push_back({.spec = one.spec, .channels = std::move(*urls)});
    }
    return {};
}

/// The variable in which users say what the machine has.
std::string override_of(const std::string& package) {
    return "CONDA_OVERRIDE_" + upper(package.substr(2));
}

/// Whether the user says what the machine has.
bool is_given(const std::string& package, const inputs::BuildOptions& options,
              const Environment& environment) {
    if (package == "__cuda" && !options.conda.cuda.empty()) return true;
    return environment.contains(override_of(package));
}

/// Takes the virtual packages that the input declares instead of the machine's, which must be at least as
/// new. The driver for CUDA may be on other nodes only.
Status declare_machine(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                       std::vector<conda::VirtualPackage>& machine) {
    for (const auto& [package, where] : inputs.conda->machine) {
        const bool given = is_given(package.name, options, inputs.environment);
        const auto wanted = package.name + "=" + package.version +
                            (package.name == "__archspec" ? "=" + package.build : std::string());
        const bool may_be_missing = package.name == "__cuda" && !given;
        if (!may_be_missing && !spec::satisfies(machine, wanted)) {
            const auto own = std::ranges::find(machine, package.name, &conda::VirtualPackage::name);
            return fail_input("the environment needs another machine: " + wanted,
                              own == machine.end()
                                  ? "this one has no " + package.name
                                  : "this one has " + own->name + "=" + own->version + "=" + own->build,
                              where,
                              "Build it on such a machine, or correct the file. To choose packages for other "
                              "machines, set " +
                                  override_of(package.name) + ".");
        }
        if (given) continue;
        std::erase_if(machine, [&](const auto& one) { return one.name == package.name; });
        machine.push_back(package);
    }
    return {};
}

struct Solved {
    CondaPlan plan;
    std::vector<std::string> removed; ///< names of packages
};

/// The existing environment that an update changes.
struct Present {
    const std::vector<conda::InstalledPackage>& installed;
    const std::vector<Located>& pinned;
    bool prune;
    const std::filesystem::path& directory; ///< for temporary files
};

/// `present` is null for a new environment.
Result<Solved> solve(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                     const std::filesystem::path& cache, const Present* present) {
    const auto& config = inputs.conda_config;
    for (const auto& note : inputs.conda->notes)
        log::info("Note: " + note);
    auto effective = config;
    if (inputs.conda->no_defaults) effective.channels.clear();
    const auto earlier = present == nullptr || present->prune
                             ? std::vector<spec::CondaDependency>()
                             : earlier_requests(present->installed, *inputs.conda);
    auto choice = TRY(conda::choose_channels(inputs.conda->channels,
                                             channels_of_packages(inputs.conda->dependencies, earlier),
                                             effective, options.conda.allow_defaults));
    for (const auto& note : choice.notes)
        log::info("Note: " + note);

    Solved result;
    auto& plan = result.plan;
    plan.channels = std::move(choice.channels);
    auto request = TRY(make_request(inputs, plan.channels));
    if (present == nullptr) TRY(add_default_packages(config, plan.channels, request));
    for (const auto& wanted : request.wanted)
        plan.requested[wanted.spec.name].push_back(wanted.spec.to_string());
    // Keep the earlier requests on record for packages that are replaced by other versions.
    if (present != nullptr && !present->prune)
        for (const auto& one : present->installed)
            if (!one.requested.empty()) plan.requested.emplace(one.record.name, one.requested);
    TRY(add_earlier(earlier, plan.channels, config, request));
    if (present != nullptr) TRY(add_pins(present->pinned, request));
    if (request.wanted.empty()) return result;
    timings::Span examining("Examining the machine");
    const auto root = TRY(root::open_tree(inputs.settings.base));
    auto machine = TRY(conda::virtual_packages(
        inputs.environment, {.subdir = options.conda.subdir, .cuda = options.conda.cuda, .root = root.get()},
        image::DirectoryView("/")));
    TRY(declare_machine(options, inputs, machine));
    for (const auto& package : machine)
        log::detail(fmt::format("the machine: {} {} {}", package.name, package.version, package.build));

    examining.end();
    timings::Span reading("Reading package lists");
    auto lists = TRY(conda::fetch_repodata(plan.channels, {options.conda.subdir, "noarch"}, config,
                                           {.cache = conda::places_in(cache, inputs.environment).repodata,
                                            .offline = options.conda.offline || config.offline}));
    reading.end();
    Stage stage("Solving");
    std::optional<conda::Repodata> installed;
    if (present != nullptr) installed = TRY(list_installed(present->installed, present->directory));
    const conda::ShardAccess shards{
        .config = config,
        .offline = options.conda.offline || config.offline,
        .progress = [&](const http::Progress& now) { stage.advance(now.done, now.total, now.rate); }};
    auto pool = TRY(conda::PackagePool::load(lists, conda::names_in(request), machine,
                                             {.installed = installed ? &*installed : nullptr,
                                              .shards = shards,
                                              .exclude_newer = options.exclude_newer}));
    stage.detail(counted(pool.size(), "package"));
    auto solution = conda::solve(pool, std::move(request));
    if (!solution && pool.left_out() > 0)
        solution.error().hint += fmt::format(
            "{}--exclude-newer leaves out {} that these channels published since {}, or without a time.",
            solution.error().hint.empty() ? "" : "\n", counted(pool.left_out(), "package"),
            options.exclude_newer->text());
    auto solved = TRY(std::move(solution));
    plan.packages = std::move(solved.install);
    TRY(check_allowed(plan.packages, config));
    result.removed = std::move(solved.remove);
    stage.finish(fmt::format("{} of {} packages, from {}", human_count(plan.packages.size()),
                             human_count(pool.size()),
                             joined(plan.channels | std::views::transform(&conda::Channel::name), ", ")));
    return result;
}

void log_packages(const CondaPlan& plan) {
    for (const auto& record : plan.packages)
        log::detail(record.distribution() + " of " + record.channel);
}

/// The names in `present` that are not required, directly or indirectly, by a request in `wanted`.
std::set<std::string> not_needed(const std::vector<const conda::PackageRecord*>& present,
                                 const conda::Requests& wanted, bool pip_with_python) {
    std::map<std::string, const conda::PackageRecord*> by_name;
    for (const auto* record : present)
        by_name.emplace(record->name, record);
    std::vector<std::string> next;
    for (const auto& [name, specs] : wanted)
        next.push_back(name);
    // conda's add_pip_as_python_dependency makes pip a dependency of Python.
    if (pip_with_python && wanted.contains("python")) next.emplace_back("pip");
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

// A new minor version of Python has another site-packages directory, so noarch packages must be linked again.
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
        relink(one, changes);
    }
}

/// Whether the package that a lock names is already installed. Without a comparable checksum the answer is
/// no: reinstalling verifies the lock's checksum.
bool is_installed(const conda::PackageRecord& locked, const conda::PackageRecord& present) {
    if (locked.distribution() != present.distribution()) return false;
    if (!locked.sha256.empty() && !present.sha256.empty()) return locked.sha256 == present.sha256;
    return locked.md5.empty() ? locked.sha256.empty() : locked.md5 == present.md5;
}

/// The channels of all packages in a list, without duplicates.
std::vector<Located> channels_of_list(const inputs::Inputs& inputs) {
    std::set<std::string> urls;
    for (const auto& record : inputs.locked->packages)
        urls.insert(record.channel.empty() ? record.url.substr(0, record.url.rfind('/')) : record.channel);
    std::vector<Located> channels;
    for (const auto& url : urls)
        channels.push_back({.text = url, .where = inputs.spec.string()});
    return channels;
}

Result<CondaPlan> take_list(const inputs::Inputs& inputs) {
    for (const auto& note : inputs.locked->notes)
        log::info("Note: " + note);
    auto notes = TRY(conda::check_listed_channels(channels_of_list(inputs), inputs.conda_config));
    for (const auto& note : notes)
        log::info("Note: " + note);
    TRY(check_allowed(inputs.locked->packages, inputs.conda_config));
    CondaPlan plan;
    plan.locked = true;
    plan.packages = inputs.locked->packages;
    plan.requested = inputs.locked->requested;
    return plan;
}

/// A list removes nothing. `present` is null for a new environment.
Result<Solved> solve_or_take_list(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                  const Present* present) {
    auto cache = TRY(conda::cache_directory(inputs.environment, options.site.cache));
    Solved result;
    if (inputs.locked)
        result.plan = TRY(take_list(inputs));
    else
        result = TRY(solve(options, inputs, cache, present));
    result.plan.cache = std::move(cache);
    result.plan.exclude_newer = options.exclude_newer;
    return result;
}

} // namespace

spec::LockedEnvironment lock_of(const CondaPlan& plan, const inputs::Inputs& inputs) {
    spec::LockedEnvironment locked;
    for (const auto& channel : plan.channels)
        locked.channels.push_back(channel.url);
    if (plan.exclude_newer) locked.exclude_newer = plan.exclude_newer->text();
    if (plan.locked) {
        locked.channels = inputs.locked->channels;
        locked.exclude_newer = inputs.locked->exclude_newer;
    }
    locked.requested = plan.requested;
    locked.variables = inputs.variables();
    return locked;
}

Result<CondaPlan> plan_conda(const inputs::BuildOptions& options, const inputs::Inputs& inputs) {
    auto solved = TRY(solve_or_take_list(options, inputs, nullptr));
    log_packages(solved.plan);
    return std::move(solved.plan);
}

Error with_list(Error error, const inputs::Inputs& inputs) {
    if (!inputs.locked || error.where.empty()) return error;
    error.hint += (error.hint.empty() ? "" : "\n") + ("This package is listed in " + inputs.spec.string()) +
                  ". If its entry there is wrong, lock the environment again.";
    return error;
}

void relink(const conda::InstalledPackage& package, CondaChanges& changes) {
    changes.plan.packages.push_back(package.record);
    if (!package.requested.empty()) changes.plan.requested.emplace(package.record.name, package.requested);
    changes.removed.push_back(package);
}

Result<CondaChanges> plan_conda_changes(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                        const std::vector<conda::InstalledPackage>& installed,
                                        const std::vector<Located>& pinned, bool prune,
                                        const std::filesystem::path& directory) {
    const Present present{.installed = installed, .pinned = pinned, .prune = prune, .directory = directory};
    auto solved = TRY(solve_or_take_list(options, inputs, &present));
    CondaChanges changes{.plan = std::move(solved.plan), .removed = {}};
    std::set<std::string> removed(solved.removed.begin(), solved.removed.end()); ///< names of packages
    if (inputs.locked) {
        std::set<std::string> there;
        for (const auto& one : installed) {
            const auto same = std::ranges::find_if(
                changes.plan.packages, [&](const auto& record) { return is_installed(record, one.record); });
            if (same == changes.plan.packages.end())
                removed.insert(one.record.name);
            else
                there.insert(one.record.distribution());
        }
        std::erase_if(changes.plan.packages,
                      [&](const auto& record) { return there.contains(record.distribution()); });
    } else if (prune) {
        std::vector<const conda::PackageRecord*> there;
        for (const auto& record : changes.plan.packages)
            there.push_back(&record);
        for (const auto& one : installed)
            if (!removed.contains(one.record.name)) there.push_back(&one.record);
        removed.merge(not_needed(there, changes.plan.requested, inputs.conda_config.pip_with_python));
    }
    for (const auto& one : installed)
        if (removed.contains(one.record.name)) changes.removed.push_back(one);
    relink_for_new_python(installed, changes);
    for (const auto& one : changes.removed)
        log::detail("without " + one.record.distribution());
    log_packages(changes.plan);
    return changes;
}

} // namespace containerize::environments
