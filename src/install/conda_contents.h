// What a conda environment holds, as its own files say it.
#pragma once

#include "conda/installed.h"
#include "pip/distributions.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct CondaContents {
    std::vector<conda::InstalledPackage> packages;
    std::vector<pip::Distribution> of_conda; ///< Python packages that those brought
    std::vector<pip::Distribution> of_pip;   ///< and those that came otherwise
};

/// `root` is where the environment can be seen; `python_name` ("python3.11") is empty without Python.
Result<CondaContents> read_contents(const std::filesystem::path& root, const std::string& python_name);

/// As `conda list` prints them, one a line.
std::string package_list(const CondaContents& contents);

} // namespace containerize::install
