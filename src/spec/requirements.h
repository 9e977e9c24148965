// pip requirements files: what they include and name, so that it can be checked before the build, kept with
// the installation, and reported by file and line. pip itself stays the judge of each requirement.
#pragma once

#include "spec/conda_environment.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::spec {

/// One requirement or option, with line continuations joined, comments removed and variables replaced.
struct RequirementLine {
    std::filesystem::path file;
    std::size_t number = 0; ///< of its first line, from 1
    std::string text;
    std::string foreign = {}; ///< where it stands if `file` is no requirements file: "env.yml:7"
};

struct Requirements {
    std::vector<RequirementLine> lines;       ///< of all files, in the order in which pip reads them
    std::vector<std::filesystem::path> files; ///< the file itself, and the local ones that -r and -c include
    std::vector<std::string> editable;        ///< what -e names: it stays where it is on disk
    std::string sha256;                       ///< of the content of all `files`, in their order
};

/// Reads `file` and what it includes. Mistakes that pip would report late or obscurely are input errors with
/// file:line: a missing include or local path, a cycle of includes, an unknown option, an impossible
/// requirement, text that is not UTF-8.
/// Included files are looked for beside the file that names them, local projects and
/// archives in `working_directory`, as pip does.
Result<Requirements> read_requirements(const std::filesystem::path& file,
                                       const std::filesystem::path& working_directory);

/// Checks lines that stand in another file, such as in the `pip:` section of an environment file, as
/// read_requirements() does those of a file in `directory`.
Status check_requirements(const std::vector<Located>& lines, const std::filesystem::path& directory);

} // namespace containerize::spec
