// Going back to an earlier state of an installation, and making one image of its layers.
#pragma once

#include "install/build.h"
#include "util/error.h"

#include <optional>

namespace containerize::install {

/// Numbers of states; the same one where nothing changed.
struct Rollback {
    unsigned from = 0, to = 0;
};
/// Makes an earlier (or later) state the current one; without a number the one that the current one was made
/// from. All other states stay. Of the options, those count that say where things are.
Result<Rollback> rollback(const BuildOptions& options, std::optional<unsigned> state);

/// Packs what the current state shows into one image, as a new state, the only one then. The image is the one
/// that packing such a tree afresh gives, or one with the recorded files first, by options.layout. Profiles
/// go on to count; the commands that made the state are kept (squashed_key). Does nothing (`unchanged`) if
/// there are no layers, and none is to be placed by a profile.
Result<BuildSummary> squash(const BuildOptions& options);

} // namespace containerize::install
