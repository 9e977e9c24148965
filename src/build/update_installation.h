// Updates an installation: each update adds a layer over the existing images.
#pragma once

#include "build/build.h"
#include "core/error.h"
#include "environments/environment_builder.h"

#include <string>
#include <vector>

namespace containerize::build {

struct UpdateOptions {
    inputs::BuildOptions build;       ///< `prefix` is that of the installation; `spec` may be empty
    std::vector<std::string> command; ///< run inside, at the terminal; empty for none
    bool prune = false;               ///< remove conda packages that `spec` does not need
};

/// What update() would change; nothing is changed. Fails with an input error if only running something tells.
Result<environments::UpdatePlan> plan_update(const UpdateOptions& options);

/// On failure the installation stays as it was. Running processes keep the state they started with.
Result<BuildSummary> update(const UpdateOptions& options);

} // namespace containerize::build
