// Changing an installation: each change is a layer of its own over the images that are there.
#pragma once

#include "install/build.h"
#include "util/error.h"

#include <string>
#include <vector>

namespace containerize::install {

struct UpdateOptions {
    BuildOptions build;               ///< `prefix` is the installation's; `spec` may be empty
    std::vector<std::string> command; ///< run inside, at the terminal; empty for none
    bool prune = false;               ///< packages of conda that `spec` does not need go
};

/// All or nothing: on failure the installation stays as it was. Running processes keep the state that they
/// started with.
Result<BuildSummary> update(const UpdateOptions& options);

} // namespace containerize::install
