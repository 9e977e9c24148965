// Writes lists of exact packages in the formats of other tools.
#pragma once

#include "spec/conda_environment.h"
#include "spec/spec.h"

#include <string>
#include <vector>

namespace containerize::spec {

struct WrittenList {
    std::string text;
    std::vector<std::string> notes = {}; ///< warnings about what the format cannot contain
};

/// The environment in one of these formats: conda_explicit, conda_lock, pixi_lock, environment_yaml. The same
/// environment gives the same text. Addresses with a mark or a variable in place of a secret count as
/// unknown.
WrittenList written_list(const LockedEnvironment& environment, const std::string& subdir, SpecKind format);

} // namespace containerize::spec
