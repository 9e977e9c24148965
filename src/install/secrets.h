// What is secret in a build: its inputs and the user's configuration say it before anything is written.
#pragma once

#include "install/inputs.h"
#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <string>

namespace containerize::install {

/// Remembers (util/redact.h) the logins that pip, uv, git and libcurl will find in the user's files.
void remember_configured_secrets(const Environment& environment);

/// Remembers what stands in the files that the user gave.
void remember_secrets_of(const Inputs& inputs);

/// What pip, uv and git note of where packages and clones came from: without logins, from now on. `root` is
/// the environment, `python_name` "python3.11".
Status remove_secrets_of_packages(const std::filesystem::path& root, const std::string& python_name);

} // namespace containerize::install
