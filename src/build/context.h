// Sets up what every build needs: a lock on its prefix, a staging directory, a log and a namespace.
#pragma once

#include "build/build.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "inputs/inputs.h"
#include "prefix/cleanup_process.h"
#include "prefix/prefix.h"

#include <functional>

namespace containerize::build {

struct Workplace {
    environments::BuildContext& context;
    prefix::CleanupProcess& cleanup;
    const prefix::PrefixLock& lock;
};
using Work = std::function<Result<BuildSummary>(const Workplace&)>;

/// Runs `work`. On failure leaves nothing but the log, whose path is in the error message.
Result<BuildSummary> with_build_context(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                        const Work& work);

} // namespace containerize::build
