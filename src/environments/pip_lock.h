// pip's part of a lock: lines that install the same packages again.
#pragma once

#include "pip/distributions.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::environments {

/// Maps "name==version" to the checksums of a package from an index, as options of a requirement line: "
/// --hash=sha256:...".
using Checksums = std::map<std::string, std::string>;

/// Reads checksums from the output of `pip install --report`.
Checksums checksums_in_report(std::string_view text);
/// Reads checksums from lines of a requirements file.
Checksums checksums_in_lines(const std::vector<std::string>& lines);

/// The key of a distribution in Checksums.
std::string pin_of(const pip::Distribution& distribution);

/// Whether an installed distribution satisfies a lock's `line`: same origin and version, and its checksums in
/// `known` (from the lock of the existing installation) are among those of the line.
bool fits_line(const pip::Distribution& installed, const std::string& line, const Checksums& known);

/// The options in requirements files, included ones too, that say where and how to find packages. Makes local
/// paths among them absolute. `directory` is the working directory of pip.
std::vector<std::string> lasting_options(const spec::Requirements& requirements,
                                         const std::filesystem::path& directory);

/// Fills in pip's part of `locked`: `options` first, then a line for each package.
void lock_requirements(const std::vector<pip::Distribution>& installed, const Checksums& checksums,
                       const std::vector<std::string>& options, spec::LockedEnvironment& locked);

} // namespace containerize::environments
