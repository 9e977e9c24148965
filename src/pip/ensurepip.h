// The wheels of pip that come with Python, for venvs.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace containerize::pip {

/// Copies the wheels that `python -m venv` would install (pip, and setuptools before Python 3.12) to
/// `directory`. `inside` makes the command that runs these arguments where Python is. Returns none if they
/// are not where they usually are.
Result<std::vector<std::filesystem::path>>
copy_wheels_for_venvs(const std::string& python,
                      const std::function<Command(std::vector<std::string>)>& inside,
                      const std::filesystem::path& directory);

} // namespace containerize::pip
