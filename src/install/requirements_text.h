// Requirements files for another place than the one that they were written for.
#pragma once

#include "spec/conda_environment.h"
#include "spec/requirements.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

/// The text of a requirements file with these lines, for a place other than `directory`, to which what they
/// name is relative.
std::string requirements_text(const std::vector<spec::Located>& lines,
                              const std::filesystem::path& directory);

/// Copies in `directory`, line by line, of a file and all that it includes, which `read` has; without the
/// logins in URLs of git. Where the first of them is.
Result<std::filesystem::path> copy_without_git_logins(const spec::Requirements& read,
                                                      const std::filesystem::path& directory);

} // namespace containerize::install
