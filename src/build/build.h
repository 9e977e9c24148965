// Builds an installation: from a requirements file to a directory that can be put on PATH.
#pragma once

#include "build/list_format.h"
#include "conda/package_record.h"
#include "core/error.h"
#include "inputs/build_options.h"
#include "pip/resolution.h"
#include "spec/written_list.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::build {

struct BuildSummary {
    std::filesystem::path prefix;
    std::uint64_t files = 0;
    std::uint64_t image_bytes = 0;
    std::size_t commands = 0;
    double seconds = 0;
    unsigned state = 0;
    bool unchanged = false; ///< an update had nothing to do and left the installation as it was
};

/// The packages that a build would install.
struct DryRun {
    std::vector<conda::PackageRecord> packages = {}; ///< conda packages, in link order
    std::vector<pip::ResolvedPackage> of_pip = {};   ///< pip packages, sorted by name for each file
    std::size_t pip_lines = 0;                       ///< number of pip requirements that are not solved
    std::string why_not_solved = {};                 ///< these requirements
    std::string python = {}; ///< for which pip's packages were chosen, without conda: "3.11.2"
};
/// pip or uv decides in a temporary environment.
Result<DryRun> dry_run(const inputs::BuildOptions& options);

/// The lock file with the packages that a build for options.conda.subdir would install: for a requirements
/// file or a Python project a pylock.toml. Fails with an input error if pip would install for another
/// platform than this one, or if it has no such format.
Result<spec::WrittenList> lock(const inputs::BuildOptions& options, const WantedFormat& format);

/// Builds and publishes an installation, or leaves nothing but the log, whose path is in the error message.
/// Reports progress through util/log.h.
Result<BuildSummary> build(const inputs::BuildOptions& options);

/// Like build(), for software that is already installed in the directory `source`. With `mask`, the image is
/// also mounted over `source` wherever the installation runs.
Result<BuildSummary> wrap_install(const inputs::BuildOptions& options, const std::filesystem::path& source,
                                  bool mask);

/// Like build(), for the tykky installation in `directory`. Copies its image and leaves the original alone.
Result<BuildSummary> import_tykky(const inputs::BuildOptions& options,
                                  const std::filesystem::path& directory);

/// Like build(), for the programs of the base (options.base) at options.wrapper_paths.
Result<BuildSummary> wrap_container(const inputs::BuildOptions& options);

} // namespace containerize::build
