// Repairs scripts that installers wrote.
#pragma once

#include "core/error.h"

#include <filesystem>

namespace containerize::environments {

/// If the prefix contains spaces, pip starts its scripts through sh with the prefix in double quotes, in
/// which sh expands '$', '`', '"' and '\'. Rewrites such scripts in `directory` so that they find the
/// interpreter beside themselves.
Status repair_scripts(const std::filesystem::path& directory, const std::filesystem::path& prefix);

} // namespace containerize::environments
