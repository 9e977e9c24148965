// pip's part of a lock: from what is installed to lines with which the same can be installed again.
#pragma once

#include "pip/distributions.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::install {

/// Checksums of packages that an index gave, as options of a requirement: " --hash=sha256:..." by
/// "name==version".
using Checksums = std::map<std::string, std::string>;

/// `text` is of `pip install --report`.
Checksums checksums_in_report(std::string_view text);
/// Those that lines of a requirements file have.
Checksums checksums_in_lines(const std::vector<std::string>& lines);

/// Under which a package is in Checksums.
std::string pin_of(const pip::Distribution& distribution);

/// The line of a requirements file that installs it again, without a checksum that an index has.
std::string requirement_line(const pip::Distribution& distribution);

/// Whether what is installed can be taken for what `line` of a lock names: checksums that are known of it are
/// among those of the line. `known` are of the lock that belongs to the installation.
bool fits_line(const pip::Distribution& installed, const std::string& line, const Checksums& known);

/// Options that say where and how to look, of the requirements and of what they include. Directories among
/// them become absolute: `directory` is where pip ran.
std::vector<std::string> lasting_options(const spec::Requirements& requirements,
                                         const std::filesystem::path& directory);

/// Writes down what pip installed: `options` first, then a line for each package.
void lock_requirements(const std::vector<pip::Distribution>& installed, const Checksums& checksums,
                       const std::vector<std::string>& options, spec::LockedEnvironment& locked);

} // namespace containerize::install
