// pip's part of a lock: lines that install the same packages again.
#pragma once

#include "environments/environment_builder.h"
#include "pip/distributions.h"
#include "pip/pylock.h"
#include "pip/resolution.h"
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

/// Maps "name==version" to the file of a package from an index.
using IndexFiles = std::map<std::string, spec::PipSource>;

/// Adds those of the packages that come from an index. They replace earlier ones with other content.
void add_index_files(const std::vector<pip::ResolvedPackage>& packages, IndexFiles& files);
/// Adds those that an earlier lock has, if they are not known yet.
void add_index_files(const std::vector<spec::LockedPackage>& packages, IndexFiles& files);

/// The key of a distribution in Checksums and IndexFiles.
std::string pin_of(const pip::Distribution& distribution);

/// Whether an installed distribution satisfies a lock's `line`: same origin and version, and its checksums in
/// `known` (from the lock of the existing installation) are among those of the line.
bool fits_line(const pip::Distribution& installed, const std::string& line, const Checksums& known);

/// The options in requirements files, included ones too, that say where and how to find packages. Makes local
/// paths among them absolute. `directory` is the working directory of pip.
std::vector<std::string> lasting_options(const spec::Requirements& requirements,
                                         const std::filesystem::path& directory);

/// What is known about installed packages beyond what their own files tell.
struct KnownOfPip {
    Checksums checksums;
    IndexFiles files;
    std::vector<std::string> options; ///< of requirements files, as lasting_options() returns them
};

/// Fills in pip's part of `locked`: the options first, then a line for each package.
void lock_requirements(const std::vector<pip::Distribution>& installed, const KnownOfPip& known,
                       spec::LockedEnvironment& locked);

/// The lock of an environment with pip packages only. `of_venv` are the pins of what the venv came with.
pip::Pylock pylock_of(const std::vector<pip::Distribution>& installed, const KnownOfPip& known,
                      const std::vector<std::string>& of_venv);
/// The same as a record of the installation, for the Python and the machine of this build.
Result<prefix::LockFile> lock_file(const pip::Pylock& lock, const BuildContext& context);

} // namespace containerize::environments
