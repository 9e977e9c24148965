// Finds the secrets of a build, in its inputs and the user's configuration, before anything is written.
#pragma once

#include "core/error.h"
#include "inputs/inputs.h"
#include "util/process.h"

#include <filesystem>
#include <string>

namespace containerize::inputs {

/// Remembers (util/redact.h) the logins in the user's files that pip, uv, git and libcurl read.
void remember_configured_secrets(const Environment& environment);

/// Remembers the secrets in the files that the user gave.
void remember_secrets_of(const Inputs& inputs);

/// Removes logins from the origins that pip, uv and git record for packages and clones. `root` is the
/// environment. `written` has what programs wrote there, at the same paths: the environment itself, or the
/// writable layer over packages. `python_name` is Python's directory ("python3.11").
Status remove_secrets_of_packages(const std::filesystem::path& root, const std::filesystem::path& written,
                                  const std::string& python_name);

} // namespace containerize::inputs
