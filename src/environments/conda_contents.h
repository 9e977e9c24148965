// Reads what a conda environment contains from its own metadata.
#pragma once

#include "conda/installed.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "pip/distributions.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::environments {

struct CondaContents {
    std::vector<conda::InstalledPackage> packages;
    std::vector<pip::Distribution> of_conda; ///< Python packages that conda installed
    std::vector<pip::Distribution> of_pip;   ///< Python packages installed by pip or other means
};

/// Reads the environment at `root`. `python_name` ("python3.11") is empty without Python.
Result<CondaContents> read_contents(const std::filesystem::path& root, const std::string& python_name);

/// Notes in BuildContext::record, for `inspect`, how many packages are conda's, and which Python is there.
void record_contents(const CondaContents& contents, const std::string& python_name, BuildContext& context);

/// Whether conda was asked for nothing but Python and pip. Then the environment serves pip packages.
bool only_python_is_requested(const CondaContents& contents);

/// "name==version" per line, as pip has it.
std::string pip_list(const std::vector<pip::Distribution>& distributions);

/// One package per line, in the columns of `conda list`.
std::string package_list(const CondaContents& contents);

} // namespace containerize::environments
