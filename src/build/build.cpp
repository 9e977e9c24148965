#include "build/build.h"

#include "build/context.h"
#include "build/export.h"
#include "build/record_profile.h"
#include "build/states.h"
#include "build/steps.h"
#include "conda/cache_directory.h"
#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "core/staging.h"
#include "environments/conda_plan.h"
#include "inputs/find_base.h"
#include "inputs/inputs.h"
#include "pip/pylock.h"
#include "pip/sources.h"
#include "spec/locked_lines.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>

namespace containerize::build {

namespace {

/// Called after all cheap checks: fetching an image may take minutes.
Status add_base(const inputs::BuildOptions& options, inputs::Inputs& inputs) {
    auto& base = inputs.settings.base;
    auto found = TRY(inputs::find_base(options, base.reference));
    found.isolate = base.isolate;
    base = std::move(found);
    return {};
}

/// An import uses the host's root if its Python runs there, otherwise tykky's container in its place.
Status add_container(const inputs::BuildOptions& options, inputs::Inputs& inputs) {
    const auto& tykky = *inputs.tykky;
    inputs.settings.base.reference = "host";
    const auto needed = TRY(inputs::needs_container(tykky));
    if (!needed) return {};
    if (!quiet::exists(tykky.container_image))
        return fail_input(
            "the environment's Python is in tykky's container, which is missing",
            "the container was made from " + tykky.container, tykky.container_image.string(),
            "Put the container back, or build the environment again with `containerize new --base " +
                tykky.container + "` from the files in " +
                (tykky.directory / "share/previous_input").string() + ".");
    auto base = TRY(inputs::find_base(options, tykky.container_image.string()));
    base.isolate = options.settings.base.isolate;
    inputs.settings.base = std::move(base);
    log::info("Note: the programs run in tykky's container, which must stay where it is: " +
              inputs.settings.base.file.string());
    return {};
}

Result<BuildSummary>
build_by(const std::function<std::unique_ptr<environments::EnvironmentBuilder>(environments::BuildContext&)>&
             make_builder,
         const inputs::BuildOptions& options, const inputs::Inputs& inputs) {
    return with_build_context(options, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
        // Check again: another build may have used the prefix before the lock.
        TRY(prefix::check_prefix(options.prefix, options.force));
        if (options.layout == inputs::Layout::profile) TRY(prefix::check_later_changes(place.lock));
        return run_steps(place, *make_builder(place.context), nullptr);
    });
}

bool is_for_this_platform(const inputs::BuildOptions& options) {
    return options.conda.subdir == conda::this_subdir();
}

std::string advice_for_pip(const inputs::BuildOptions& options, const spec::Requirements& requirements) {
    if (requirements.converted)
        return requirements.converted->complete ? "The file itself lists exact packages."
                                                : "Lock the project, and give the lock.";
    if (is_for_this_platform(options)) return "Use `pip install --dry-run -r FILE`.";
    return "For pip, use `pip install --dry-run -r FILE` on a " + options.conda.subdir +
           " machine, or `uv pip compile --python-platform NAME FILE` here.";
}

/// The inputs of a command that decides what to install but installs nothing.
Result<inputs::Inputs> inputs_for_plan(const inputs::BuildOptions& options) {
    inputs::Inputs inputs;
    inputs.settings = options.settings;
    TRY(inputs::read_spec(options, inputs));
    if (inputs.requirements) return inputs;
    // A base only tells the version of its C library, which is assumed for another platform.
    if (is_for_this_platform(options)) TRY(add_base(options, inputs));
    return inputs;
}

std::size_t pip_lines(const inputs::Inputs& inputs) {
    auto lines = inputs.pip_lines().size();
    for (const auto& more : inputs.more_requirements)
        lines += more.read.lines.size();
    return lines;
}

std::unexpected<Error> only_for_this_platform(const inputs::Inputs& inputs, std::string hint) {
    return fail_input("pip's packages can be chosen only for this machine's platform", {},
                      inputs.spec.string(), std::move(hint));
}

/// What `use` finds out in the context of a build, at a prefix that is removed again.
template<class Use>
std::invoke_result_t<Use, environments::BuildContext&> at_temporary_prefix(const inputs::BuildOptions& given,
                                                                           const Use& use) {
    const auto place = TRY(Staging::create(given.staging_parent));
    auto options = given;
    options.prefix = (place.path() / "env").string();
    options.staging_parent = place.path().parent_path();
    auto inputs = TRY(inputs::check_inputs(options));
    TRY(add_base(options, inputs));
    typename std::invoke_result_t<Use, environments::BuildContext&>::value_type found;
    const auto used =
        with_build_context(options, inputs, [&](const Workplace& workplace) -> Result<BuildSummary> {
            found = TRY(use(workplace.context));
            return {};
        });
    if (!used) return fail(Error(used.error()));
    return found;
}

Result<DryRun> dry_run_of_conda(environments::BuildContext& context) {
    auto plan = TRY(environments::plan_conda_and_pip(context));
    DryRun planned{.packages = std::move(plan.packages)};
    if (plan.of_pip.obstacle.empty()) {
        planned.of_pip = std::move(plan.of_pip.packages);
    } else {
        planned.pip_lines = pip_lines(context.inputs);
        planned.why_not_solved = std::move(plan.of_pip.obstacle);
    }
    return planned;
}

Result<DryRun> dry_run_of_pip(environments::BuildContext& context, environments::From from) {
    if (!context.inputs.requirements) return dry_run_of_conda(context); // Python comes from conda
    auto resolution = TRY(environments::plan_pip(context, from));
    if (!resolution.obstacle.empty())
        return fail_input("what would be installed is known only after the installation", resolution.obstacle,
                          context.inputs.spec.string(),
                          advice_for_pip(context.options, *context.inputs.requirements));
    return DryRun{.of_pip = std::move(resolution.packages), .python = context.record["python"]["version"]};
}

Result<DryRun> dry_run_of_pip(const inputs::BuildOptions& options, const inputs::Inputs& read,
                              environments::From from) {
    if (!is_for_this_platform(options))
        return only_for_this_platform(read, advice_for_pip(options, *read.requirements));
    return at_temporary_prefix(
        options, [&](environments::BuildContext& context) { return dry_run_of_pip(context, from); });
}

std::vector<pip::ResolvedPackage> packages_of_lock(const std::vector<spec::LockedPackage>& locked) {
    std::vector<pip::ResolvedPackage> packages;
    for (const auto& one : locked)
        packages.push_back({.name = one.name.empty() ? pip::file_name_in(one.url) : one.name,
                            .version = one.version,
                            .url = one.source.url.empty() ? one.url : one.source.url,
                            .sha256 = one.source.sha256,
                            .size = one.source.size});
    std::ranges::sort(packages, {}, [](const auto& one) { return pip::normalised_name(one.name); });
    return packages;
}

Result<DryRun> dry_run_of_conda(const inputs::BuildOptions& options, const inputs::Inputs& inputs) {
    if (inputs.conda && pip_lines(inputs) != 0 && is_for_this_platform(options))
        return at_temporary_prefix(
            options, [](environments::BuildContext& context) { return dry_run_of_conda(context); });
    DryRun planned;
    planned.packages = TRY(environments::plan_conda(options, inputs)).packages;
    if (inputs.locked && inputs.locked->of_pip) {
        planned.of_pip = packages_of_lock(*inputs.locked->of_pip);
        return planned;
    }
    planned.pip_lines = pip_lines(inputs);
    planned.why_not_solved =
        inputs.locked ? "the lock lists only a part of them" : "they are for another platform";
    return planned;
}

Result<spec::LockedEnvironment> lock_of_conda(const inputs::BuildOptions& options,
                                              const inputs::Inputs& inputs) {
    if (inputs.locked)
        return fail_input("this file already lists exact packages", {}, inputs.spec.string(),
                          "Give it to `containerize new` as it is.");
    if (pip_lines(inputs) != 0 && !is_for_this_platform(options))
        return only_for_this_platform(inputs, "Lock it on a " + options.conda.subdir + " machine.");
    if (pip_lines(inputs) != 0) return at_temporary_prefix(options, environments::lock_conda_and_pip);
    auto plan = TRY(environments::plan_conda(options, inputs));
    auto locked = environments::lock_of(plan, inputs);
    locked.packages = std::move(plan.packages);
    return locked;
}

Result<std::string> lock_of_pip(const inputs::BuildOptions& options, const inputs::Inputs& inputs) {
    // The environment's own pip is no reason to leave pip out.
    const auto plan = TRY(dry_run_of_pip(options, inputs, environments::From::nothing));
    if (plan.python.empty())
        return fail_input("pip's packages cannot be chosen without the environment's Python",
                          "it comes from conda", inputs.spec.string(),
                          "Choose a Python of this machine with --python.");
    pip::Pylock lock;
    for (const auto& package : plan.of_pip)
        lock.packages.push_back(pip::locked_package(package));
    return pip::pylock_text(lock, {.python = plan.python, .machine = spec::machine_of(conda::this_subdir())});
}

/// Post-build steps. The installation is already published and stays even if they fail.
Result<BuildSummary> finished(const inputs::BuildOptions& options, Result<BuildSummary> built) {
    if (!built) return built;
    const auto start = std::chrono::steady_clock::now();
    record_after_build(options, false);
    if (options.layout.value_or(inputs::Layout::path) == inputs::Layout::path) return built;
    if (const auto recorded = profile_coverage(built->prefix); !recorded || recorded->blocks == 0) {
        log::warn("nothing was recorded, so the image's files are ordered by path.");
        return built;
    }
    auto placed = TRY(squash(options, false));
    record_after_build(options, true); // drops files that merely shared a block with recorded ones
    built->image_bytes = placed.image_bytes;
    built->state = placed.state;
    built->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return built;
}

} // namespace

Result<DryRun> dry_run(const inputs::BuildOptions& options) {
    const auto inputs = TRY(inputs_for_plan(options));
    if (inputs.requirements) return dry_run_of_pip(options, inputs, environments::From::what_is_installed);
    return dry_run_of_conda(options, inputs);
}

Result<spec::WrittenList> lock(const inputs::BuildOptions& options, const WantedFormat& wanted) {
    const auto inputs = TRY(inputs_for_plan(options));
    const auto possible = inputs.requirements ? formats_of_pip_lock() : formats_of_conda_lock();
    const auto kind = TRY(spec::recognise_supported(inputs.spec));
    const auto format = TRY(choose_format(wanted, possible, spec::describe(kind), inputs.spec.string()));
    if (inputs.requirements) return spec::WrittenList{.text = TRY(lock_of_pip(options, inputs))};
    return list_of(TRY(lock_of_conda(options, inputs)), options.conda.subdir, format);
}

Result<BuildSummary> build(const inputs::BuildOptions& options) {
    timings::Span checking("Checking the inputs");
    auto inputs = TRY(inputs::check_inputs(options));
    TRY(add_base(options, inputs));
    checking.end();
    const auto builder =
        inputs.requirements ? environments::make_pip_builder : environments::make_conda_builder;
    return finished(options, build_by(builder, options, inputs));
}

Result<BuildSummary> wrap_install(const inputs::BuildOptions& options, const std::filesystem::path& source,
                                  bool mask) {
    auto inputs = TRY(inputs::check_wrap(options, source, mask));
    TRY(add_base(options, inputs));
    return finished(options, build_by(environments::make_wrap_builder, options, inputs));
}

Result<BuildSummary> import_tykky(const inputs::BuildOptions& options,
                                  const std::filesystem::path& directory) {
    auto inputs = TRY(inputs::check_import(options, directory));
    TRY(add_container(options, inputs));
    return finished(options, build_by(environments::make_import_builder, options, inputs));
}

Result<BuildSummary> wrap_container(const inputs::BuildOptions& options) {
    auto inputs = TRY(inputs::check_wrap_container(options));
    TRY(add_base(options, inputs));
    if (inputs.settings.base.is_host())
        return fail_input("the host is not a container image", {}, options.settings.base.reference,
                          "Give a container image, or use wrap-install.");
    return finished(options, build_by(environments::make_container_builder, options, inputs));
}

} // namespace containerize::build
