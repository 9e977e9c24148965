// Rewrites requirements files so that they can be used from another directory.
#pragma once

#include "core/error.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::environments {

/// Returns a requirements file with these lines for use in another directory than `directory`, to which their
/// paths are relative.
std::string requirements_text(const std::vector<Located>& lines, const std::filesystem::path& directory);

/// Copies the file that was `read`, and everything it includes, to `directory`, passing each line through
/// `changed`. Returns the path of the first copy.
Result<std::filesystem::path> copy_requirements(const spec::Requirements& read,
                                                const std::filesystem::path& directory,
                                                const std::function<std::string(std::string_view)>& changed);

} // namespace containerize::environments
