// Sets up what every build needs: a claim on its prefix, a staging directory, a log and a namespace.
#pragma once

#include "build/build.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "inputs/inputs.h"
#include "prefix/janitor.h"
#include "prefix/prefix.h"

#include <functional>

namespace containerize::build {

using Work =
    std::function<Result<BuildSummary>(environments::Workshop&, prefix::Janitor&, const prefix::Claim&)>;

/// Runs `work`. On failure leaves nothing but the log, whose path is in the error message.
Result<BuildSummary> in_workplace(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                  const Work& work);

} // namespace containerize::build
