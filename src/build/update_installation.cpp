#include "build/update_installation.h"

#include "build/context.h"
#include "build/record_profile.h"
#include "build/steps.h"
#include "inputs/inputs.h"
#include "manifest/manifest.h"
#include "prefix/states.h"
#include "util/timings.h"

namespace containerize::build {

namespace {

Status check_request(const UpdateOptions& options) {
    const auto& build = options.build;
    const bool something = !build.spec.empty() || !build.conda.requirements.empty() || build.pre_install ||
                           build.post_install || build.environ_script || !build.wrapper_paths.empty() ||
                           build.change_engine || !options.command.empty();
    if (build.exclude_newer && !options.command.empty())
        return fail_input("--exclude-newer does not apply to a command after --",
                          "only packages that containerize installs itself can be left out", {},
                          "Leave out one of them, or give the command's own option for this.");
    if (something) return {};
    return fail_input(
        "no change is given", {}, {},
        "Give an environment or requirements file, -r, --pre-install, --post-install, --environ, "
        "-w, --engine, or a command after --.");
}

Result<inputs::Inputs> inputs_for(const UpdateOptions& options) {
    const timings::Span checking("Checking the inputs");
    auto previous = TRY(prefix::read_changeable(options.build.prefix));
    TRY(check_request(options));
    auto inputs = TRY(inputs::check_update(options.build, previous));
    if (options.prune && !inputs.conda && !inputs.locked)
        return fail_input("--prune needs a conda environment file",
                          "with requirements files, nothing is removed", {},
                          "Leave out --prune, or give a conda environment file.");
    return inputs;
}

/// Fails if something must be run to know what changes.
Status check_plannable(const UpdateOptions& options) {
    const auto& build = options.build;
    const auto hint = "Leave out --dry-run: `containerize rollback` undoes an update.";
    if (!options.command.empty() || build.pre_install || build.post_install || build.environ_script)
        return fail_input("--dry-run cannot show what a command or script changes",
                          "that is not known without running it", {}, hint);
    if (build.uv)
        return fail_input("--dry-run cannot be combined with --uv",
                          "uv would be installed first, and then choose the packages", {}, hint);
    return {};
}

} // namespace

Result<environments::UpdatePlan> plan_update(const UpdateOptions& options) {
    TRY(check_plannable(options));
    const auto inputs = TRY(inputs_for(options));
    environments::UpdatePlan plan;
    const auto planned =
        with_build_context(options.build, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
            const auto current = TRY(prefix::read_changeable(options.build.prefix));
            place.context.record = current.build;
            plan = TRY(environments::plan_update(place.context, current, options.prune));
            return {};
        });
    if (!planned) return fail(Error(planned.error()));
    return plan;
}

Result<BuildSummary> update(const UpdateOptions& options) {
    const auto inputs = TRY(inputs_for(options));
    const environments::UpdateRequest request{.command = options.command, .prune = options.prune};
    auto updated =
        with_build_context(options.build, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
            // Read it again: another update may have made a new state before the lock.
            auto current = TRY(prefix::read_changeable(options.build.prefix));
            place.context.record = current.build;
            const auto builder = environments::make_update_builder(place.context, current, request);
            return run_steps(place, *builder, &current);
        });
    if (updated && !updated->unchanged) record_after_build(options.build, false);
    return updated;
}

} // namespace containerize::build
