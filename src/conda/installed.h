// What conda-meta says of an environment, whoever wrote it: we, conda, or mamba.
#pragma once

#include "conda/package_record.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::conda {

struct InstalledPackage {
    PackageRecord record;
    std::vector<std::string> requested; ///< the specs that asked for it; none for what others need
    std::vector<std::string> files;     ///< relative to the prefix, below it
    std::filesystem::path record_file;  ///< its own, as given by `prefix`
};

/// By name. `prefix` may be any path at which the environment can be seen.
Result<std::vector<InstalledPackage>> read_installed(const std::filesystem::path& prefix);

} // namespace containerize::conda
