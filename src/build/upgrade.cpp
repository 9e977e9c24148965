#include "build/upgrade.h"

#include "build/context.h"
#include "build/state_change.h"
#include "core/version.h"
#include "prefix/programs.h"
#include "prefix/states.h"

#include <utility>

namespace containerize::build {

Result<Upgrade> upgrade(const inputs::BuildOptions& options) {
    auto inputs = TRY(inputs_for_change(options));
    Upgrade upgraded{.prefix = inputs.prefix, .from = {}};
    auto done = with_build_context(options, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
        const auto& prefix = place.lock.prefix;
        // Another command may have changed it before this one had the lock.
        const auto current = TRY(prefix::read_changeable(prefix));
        upgraded.from = current.programs_version;
        StateChange change(place);
        upgraded.commands = TRY(change.begin(current));
        upgraded.unchanged = current.programs_version == this_version &&
                             prefix::has_programs(prefix, change.assembly(), current.wrapper_paths);
        if (upgraded.unchanged) return BuildSummary{.prefix = prefix, .unchanged = true};
        auto states = TRY(prefix::read_states(prefix));
        TRY(change.finish(current, std::move(states)));
        return BuildSummary{.prefix = prefix};
    });
    if (!done) return fail(std::move(done.error()));
    return upgraded;
}

} // namespace containerize::build
