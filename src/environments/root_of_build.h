// The root filesystem that programs of a build see.
#pragma once

#include "core/error.h"
#include "environments/build_namespace.h"
#include "inputs/inputs.h"

#include <filesystem>

namespace containerize::environments {

/// Creates the namespace in which programs of a build or an update run: with the root of
/// `inputs.settings.base`, plus the host's files that the build needs. Such a root is assembled in `staging`.
Result<BuildNamespace> make_namespace(const inputs::Inputs& inputs, const std::filesystem::path& prefix,
                                      const std::filesystem::path& staging);

} // namespace containerize::environments
