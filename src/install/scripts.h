// Repairs of what installers write.
#pragma once

#include "util/error.h"

#include <filesystem>

namespace containerize::install {

/// Where a prefix has spaces, pip starts its scripts through a line of sh with the prefix in double quotes,
/// which sh expands: '$', '`', '"' and '\' break it. Such scripts in `directory` get a line that finds the
/// interpreter beside the script.
Status repair_scripts(const std::filesystem::path& directory, const std::filesystem::path& prefix);

} // namespace containerize::install
