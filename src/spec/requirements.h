// Reads pip requirements files, so that they can be checked before the build, kept with the installation, and
// reported by file and line. Only pip judges the requirements themselves.
#pragma once

#include "core/error.h"
#include "core/located.h"
#include "spec/conda_environment.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace containerize::spec {

/// A requirement or option, with line continuations joined, comments removed and variables expanded.
struct RequirementLine {
    std::filesystem::path file;
    std::size_t number = 0; ///< first line, counted from 1
    std::string text;
    std::string foreign = {}; ///< the origin of a line in another kind of file: "env.yml:7"
    std::string name = {};    ///< of the package, if it is requested by name and without a marker
    bool constraint = false;  ///< from a constraints file: requests nothing
    std::string written = {}; ///< `text` with the names of variables, for what is shown or kept
    /// Variables that may hold a secret: in URLs, which often contain tokens, and in settings of builds.
    std::vector<std::pair<std::string, std::string>> variables = {};
};

/// A file of another tool, as lines of a requirements file.
struct ConvertedFile {
    std::vector<Located> lines = {};
    bool complete = false; ///< a lock: the lines are all packages, and checksums are required
    Located python = {};   ///< the versions of Python for which the file is, ">=3.11,<4"; may be empty
    std::vector<std::string> notes = {}; ///< for the user
};

struct Requirements {
    std::vector<RequirementLine> lines;       ///< of all files, in the order in which pip reads them
    std::vector<std::filesystem::path> files; ///< the file and its local -r and -c includes
    std::vector<std::string> editable;        ///< paths and URLs given with -e
    std::string sha256;                       ///< of the contents of `files`, in their order
    std::optional<ConvertedFile> converted;   ///< if `lines` are not those of the file
};

/// Reads `file` and its includes. Reports mistakes that pip would find late or explain badly as input errors
/// with file:line: a missing include or local path, a cycle of includes, an unknown option, an impossible
/// requirement, text that is not UTF-8. Like pip, resolves includes relative to the including file, and local
/// projects and archives relative to `working_directory`.
Result<Requirements> read_requirements(const std::filesystem::path& file,
                                       const std::filesystem::path& working_directory);

/// Checks the lines like read_requirements(). `file` is the one that was converted.
Result<Requirements> requirements_of(ConvertedFile converted, const std::filesystem::path& file);

/// Checks lines of another file, such as those below `pip:` in an environment file, like read_requirements().
/// Local paths are relative to `directory`. Returns the files that the lines include.
Result<std::vector<std::filesystem::path>> check_requirements(const std::vector<Located>& lines,
                                                              const std::filesystem::path& directory);

} // namespace containerize::spec
