// Helpers for executing other programs, and where this one is.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::cli {

/// A null-terminated argv for exec. Valid as long as `words` is.
std::vector<char*> argument_vector(const std::vector<std::string>& words);

/// The words as a line for a shell.
std::string shell_line(const std::vector<std::string>& words);

/// Executes a debug wrapper of the installation at `prefix`, which knows how to enter it. Returns only on
/// failure.
[[nodiscard]] std::unexpected<Error> become_inside(const std::filesystem::path& prefix, const char* wrapper,
                                                   const std::vector<std::string>& arguments);

/// This program's file.
std::filesystem::path own_program();

/// The tree in which this program is installed, with bin, libexec and share.
std::filesystem::path installation_tree();

/// Fails if parts of the tree that builds need are missing or truncated, as after an archive was unpacked in
/// part.
Status check_installation_tree();

/// Removes Slurm's per-task settings from our environment, which our own job steps would inherit.
void forget_tasks_of_job();

} // namespace containerize::cli
