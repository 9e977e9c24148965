#include "install/build.h"

#include "conda/package_cache.h"
#include "install/conda_plan.h"
#include "install/environ_script.h"
#include "install/inputs.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/publish.h"
#include "install/recipe.h"
#include "install/records.h"
#include "install/wrappers.h"
#include "runtime/manifest.h"
#include "runtime/namespace.h"
#include "util/filesystem.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/resources.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

using runtime::Manifest;

/// The environment of all programs of a build. What they leave in their directory for temporary files goes
/// with the staging directory.
Environment build_environment(Environment environment, const fs::path& temporary) {
    environment["TMPDIR"] = temporary.string();
    return environment;
}

Result<BuildSummary> build_in(const BuildOptions& options, const Inputs& inputs, Janitor& janitor,
                              Claim& claim, const Staging& staging) {
    const auto resources = available_resources();
    be_polite(resources);
    std::error_code failed;
    fs::create_directories(staging.path() / "tmp", failed);
    if (failed) return fail_errno("cannot make a staging directory", staging.path().string(), failed.value());
    auto space = runtime::BuildNamespace::create();
    if (!space) return fail(std::move(space.error()));
    const pid_t holder = space->pid();
    Workshop shop{.options = options,
                  .inputs = inputs,
                  .prefix = claim.prefix,
                  .staging = staging.path(),
                  .resources = resources,
                  .jobs = options.jobs != 0 ? options.jobs : default_jobs(resources),
                  .space = std::move(*space),
                  .join = [holder] { return runtime::join_namespaces(holder); },
                  .environment = build_environment(inputs.environment, staging.path() / "tmp")};
    log::detail(fmt::format("containerize {}: {}", CONTAINERIZE_VERSION, options.command_line));
    log::detail(fmt::format("{} of {} CPUs, {} of memory, staging in {}", shop.jobs, resources.cpus,
                            human_bytes(resources.memory), staging.path().string()));
    const auto recipe =
        inputs.kind == spec::SpecKind::requirements ? make_pip_recipe(shop) : make_conda_recipe(shop);
    return Build(shop, *recipe, janitor, claim).run();
}

// Adds to the message where the log is: what it says may be the only trace of the reason.
void name_log(Error& error, const BuildOptions& options, const fs::path& staging) {
    log::detail("failed: " + to_string(error));
    // Programs such as ensurepip keep the reason to themselves.
    constexpr std::uint64_t nearly_full = 16U << 20U;
    if (const auto room = available_bytes(staging); room && *room < nearly_full)
        error.hint += (error.hint.empty() ? "" : "\n") + staging.parent_path().string() +
                      " is full: make room, or give --tmpdir another directory.";
    const fs::path log =
        options.log_copy ? *options.log_copy : save_log(log::current(), staging.parent_path());
    if (log.empty()) return;
    if (!error.hint.empty()) error.hint += "\n";
    error.hint += "The whole log: " + log.string();
}

} // namespace

Result<std::vector<conda::PackageRecord>> dry_run(const BuildOptions& options) {
    Inputs inputs;
    if (auto read = read_spec(options, inputs); !read) return fail(std::move(read.error()));
    if (inputs.kind == spec::SpecKind::requirements)
        return fail_input("--dry-run is for conda environments", {}, inputs.spec.string(),
                          "pip shows what it would do with `pip install --dry-run -r FILE`.");
    auto cache = conda::cache_directory(inputs.environment);
    if (!cache) return fail(std::move(cache.error()));
    auto plan = plan_conda(options, inputs, *cache);
    if (!plan) return fail(std::move(plan.error()));
    return std::move(plan->packages);
}

Result<BuildSummary> build(const BuildOptions& options) {
    auto inputs = check_inputs(options);
    if (!inputs) return fail(std::move(inputs.error()));

    sweep_staging(options.staging_parent);
    // The janitor outlives what is declared after it: the namespace's process holds its pipe, too.
    auto janitor = Janitor::start();
    if (!janitor) return fail(std::move(janitor.error()));
    auto claim = claim_prefix(inputs->prefix, *janitor);
    if (!claim) return fail(std::move(claim.error()));
    // Until the claim, another build may have put something there.
    if (auto still = check_prefix(options.prefix, options.force); !still)
        return fail(std::move(still.error()));
    auto staging = Staging::create(options.staging_parent);
    if (!staging) return fail(std::move(staging.error()));
    janitor->remove_tree_later(staging->path());
    if (auto opened = log::open(staging->path() / "build.log", options.log_level); !opened)
        return fail(std::move(opened.error()));
    if (options.log_copy)
        if (auto opened = log::also(*options.log_copy); !opened) {
            opened.error().fault = Fault::input;
            return fail(std::move(opened.error()));
        }

    auto built = build_in(options, *inputs, *janitor, *claim, *staging);
    if (!built && built.error().fault == Fault::failure && !interrupted())
        name_log(built.error(), options, staging->path());
    return built;
}

} // namespace containerize::install
