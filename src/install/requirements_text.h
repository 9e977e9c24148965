// Requirements files for another place than the one that they were written for.
#pragma once

#include "spec/conda_environment.h"
#include "spec/requirements.h"
#include "util/error.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::install {

/// The text of a requirements file with these lines, for a place other than `directory`, to which what they
/// name is relative.
std::string requirements_text(const std::vector<spec::Located>& lines,
                              const std::filesystem::path& directory);

/// Copies in `directory`, line by line as `changed` has it, of a file and all that it includes, which `read`
/// has. Where the first of them is.
Result<std::filesystem::path> copy_requirements(const spec::Requirements& read,
                                                const std::filesystem::path& directory,
                                                const std::function<std::string(std::string_view)>& changed);

} // namespace containerize::install
