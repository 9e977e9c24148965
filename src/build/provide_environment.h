// Finds or builds the environment that a command is to run in.
#pragma once

#include "build/command_environments.h"
#include "build/command_request.h"
#include "core/error.h"
#include "inputs/build_options.h"

#include <cstdint>

namespace containerize::build {

/// Where environments are kept, and how.
struct ProvideOptions {
    std::filesystem::path directory;
    std::uint64_t limit = 0; ///< of their total size, in bytes
    bool anew = false;       ///< build even if there is one
};

/// Returns an environment that is complete. `options` are those of a build; the prefix and the specification
/// are filled in. Messages name the options of `exec`. This process is not changed by the build, and must not
/// have threads.
Result<ClaimedEnvironment> provide_environment(const CommandRequest& request, inputs::BuildOptions options,
                                               const ProvideOptions& provide);

} // namespace containerize::build
