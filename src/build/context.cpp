#include "build/context.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/resources.h"
#include "core/staging.h"
#include "core/version.h"
#include "environments/environ_script.h"
#include "environments/image_cache.h"
#include "environments/root_of_build.h"
#include "launch/namespace.h"
#include "prefix/publish.h"
#include "prefix/records.h"
#include "root/root.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace containerize::build {

namespace {

/// The environment of all programs of a build. TMPDIR is in the staging directory, so leftovers vanish with
/// it.
Environment build_environment(const inputs::Inputs& inputs, const fs::path& prefix,
                              const fs::path& temporary) {
    auto environment =
        environments::with_changes(inputs.environment, root::environment_of(inputs.settings.base), prefix);
    environment["TMPDIR"] = temporary.string();
    return environment;
}

unsigned jobs(const inputs::BuildOptions& options, const Resources& resources) {
    const unsigned wanted = options.jobs != 0 ? options.jobs : default_jobs(resources);
    return options.site.max_jobs == 0 ? wanted : std::min(wanted, options.site.max_jobs);
}

Result<BuildSummary> work_in(const Staging& staging, const inputs::BuildOptions& options,
                             const inputs::Inputs& inputs, prefix::CleanupProcess& cleanup,
                             const prefix::PrefixLock& lock, const Work& work, bool& log_has_reason) {
    const auto resources = available_resources();
    lower_priority(resources);
    TRY(make_directories(staging.path() / "tmp", "cannot create a staging directory"));
    auto space = environments::make_namespace(inputs, lock.prefix, staging.path());
    if (!space) {
        if (space.error().fault == Fault::engine)
            space.error().hint += "\nBuilds need the native engine. Build on a machine where it works. The "
                                  "installation then runs here with Apptainer or Singularity.";
        return fail(std::move(space.error()));
    }
    const pid_t holder = space->pid();
    cleanup.end_processes_first(holder);
    environments::BuildContext context{.options = options,
                                       .inputs = inputs,
                                       .prefix = lock.prefix,
                                       .staging = staging.path(),
                                       .resources = resources,
                                       .jobs = jobs(options, resources),
                                       .space = std::move(*space),
                                       .join = [holder] { return launch::join_namespaces(holder); },
                                       .environment =
                                           build_environment(inputs, lock.prefix, staging.path() / "tmp")};
    log::detail(fmt::format("containerize {}: {}", this_version, options.command_line));
    log::detail(fmt::format("{} of {} CPUs, {} of memory, staging in {}", context.jobs, resources.cpus,
                            human_bytes(resources.memory), staging.path().string()));
    auto done = work({.context = context, .cleanup = cleanup, .lock = lock});
    if (done) environments::apply_cache_limits(context);
    log_has_reason = context.log_has_reason;
    return done;
}

/// Whether the staging directory's filesystem is, or was, full: what did not fit may have been removed since.
bool is_full(const fs::path& staging, const Error& error) {
    const bool was_full = error.why == std::strerror(ENOSPC) || error.why == std::strerror(EDQUOT);
    // The environment, whose changes are staged, is reached through the process of the build's namespace.
    if (was_full && (is_below(error.where, staging) || is_below(error.where, "/proc"))) return true;
    // Python up to 3.11 does not notice that a full disk cut off byte-code that it wrote.
    if (error.why.contains("marshal data too short")) return true;
    // Programs such as ensurepip do not report the reason.
    constexpr std::uint64_t nearly_full = 16U << 20U;
    const auto room = available_bytes(staging);
    return room && *room < nearly_full;
}

void say_if_full(Error& error, const fs::path& staging) {
    if (is_full(staging, error))
        error.hint += (error.hint.empty() ? "" : "\n") + staging.parent_path().string() +
                      " is full. Free some space, or choose another directory with --tmpdir or TMPDIR.";
}

// Adds the log's path to the message: the log may hold the only hint at the cause.
void name_log(Error& error, const inputs::BuildOptions& options, const fs::path& staging) {
    log::detail("failed: " + to_string(error));
    const fs::path log =
        options.log_copy ? *options.log_copy : prefix::save_log(log::current(), staging.parent_path());
    if (log.empty()) return;
    if (!error.hint.empty()) error.hint += '\n';
    error.hint += "The full log is " + log.string();
}

} // namespace

Result<BuildSummary> with_build_context(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                        const Work& work) {
    std::optional<timings::Span> cleaning_up; // declared first, so ends last
    timings::Span preparing("Preparing");
    sweep_staging(options.staging_parent);
    // Declared first, so destroyed last: the namespace's process inherits the cleanup process's socket and
    // must end first.
    auto cleanup = TRY(prefix::CleanupProcess::start());
    auto lock = TRY(prefix::lock_prefix(inputs.prefix, cleanup));
    prefix::remove_leftovers(lock);
    cleanup.sweep_staging_later(options.staging_parent);
    auto staging = TRY(Staging::create(options.staging_parent));
    cleanup.remove_tree_later(staging.path());
    prefix::sweep_logs(staging.path().parent_path());
    TRY(log::open(staging.path() / "build.log", options.log_level));
    if (options.log_copy)
        if (auto opened = log::also(*options.log_copy); !opened) {
            opened.error().fault = Fault::input;
            return fail(std::move(opened.error()));
        }

    const Work timed_work = [&](const Workplace& place) {
        preparing.end();
        auto worked = work(place);
        cleaning_up.emplace("Cleaning up");
        return worked;
    };
    bool log_has_reason = true;
    auto done = work_in(staging, options, inputs, cleanup, lock, timed_work, log_has_reason);
    if (!done && options.keep_files) {
        done.error().hint += (done.error().hint.empty() ? "" : "\n") +
                             ("The files that were built so far are in " + staging.keep().string());
    } else if (!done && done.error().fault != Fault::input && !interrupted()) {
        say_if_full(done.error(), staging.path());
        if (log_has_reason) name_log(done.error(), options, staging.path());
    }
    return done;
}

} // namespace containerize::build
