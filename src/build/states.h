// Returns an installation to an earlier state, and merges its layers into one image.
#pragma once

#include "build/build.h"
#include "core/error.h"

#include <optional>

namespace containerize::build {

/// Numbers of states; equal if nothing changed.
struct Rollback {
    unsigned from = 0, to = 0;
};
/// Makes another state the current one, without a number the parent of the current state. All other states
/// are kept. Uses only those options that say where things are.
Result<Rollback> rollback(const inputs::BuildOptions& options, std::optional<unsigned> state);

/// Packs the files of the current state into one image, as a new state that replaces all others, with
/// recorded files first if options.layout says so. Compressed blocks are copied, unless `compress_anew`.
/// Keeps profiles, and the commands that made the state (squashed_key). Does nothing (`unchanged`) if there
/// are no layers and nothing need be placed or compressed anew.
Result<BuildSummary> squash(const inputs::BuildOptions& options, bool compress_anew);

} // namespace containerize::build
