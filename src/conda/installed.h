// Reads conda-meta of an environment, whether conda, mamba or this program wrote it.
#pragma once

#include "conda/conda_config.h"
#include "conda/package_record.h"
#include "core/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::conda {

struct InstalledPackage {
    PackageRecord record;
    std::vector<std::string> requested;  ///< the specs that requested it; empty for dependencies
    std::vector<std::string> files = {}; ///< relative to the prefix, and below it
    std::filesystem::path record_file;   ///< the path of its record, starting with `prefix`
};

/// Returns the packages sorted by name. `prefix` may be any path at which the environment is mounted.
Result<std::vector<InstalledPackage>> read_installed(const std::filesystem::path& prefix);

/// Returns the specs in conda-meta/pinned with file and line; empty without such a file.
Result<std::vector<Located>> read_pinned(const std::filesystem::path& prefix);

} // namespace containerize::conda
