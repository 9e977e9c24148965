// Requirements files that are made from what the user gave in another form.
#pragma once

#include "core/error.h"
#include "environments/installers.h"
#include "spec/requirements.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::environments {

/// Whether the line of a requirements file requires nothing itself.
bool is_option(const std::string& line);

/// Writes lines of the user's file `input` to `file`, and reads them. Errors are about the input.
Result<spec::Requirements> write_requirements(const std::filesystem::path& file,
                                              const std::vector<Located>& lines,
                                              const std::filesystem::path& input);

/// Writes the lines of a lock to files in `directory`. Without `dependencies`, they list all packages.
Result<std::vector<RequirementsToInstall>> write_lines_of_lock(const std::vector<Located>& lines,
                                                               bool dependencies,
                                                               const std::filesystem::path& input,
                                                               const std::filesystem::path& directory);

/// What `input` means for pip and uv, which read one file after the other: itself, or files in `directory` if
/// it had to be converted. Paths in it are relative to `working_directory`.
Result<std::vector<RequirementsToInstall>>
requirements_to_install(const std::filesystem::path& input, const spec::Requirements& read,
                        const std::filesystem::path& working_directory,
                        const std::filesystem::path& directory);

/// Fails with an input error if the file is for other versions of Python than `version`.
Status check_version_of_python(const spec::Requirements& read, const std::string& version);

} // namespace containerize::environments
