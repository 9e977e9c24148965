// The interface of the commands: each registers its options and provides the function that runs it.
#pragma once

#include "core/error.h"
#include "core/text.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// Returns the exit code of the process.
using Action = std::function<Result<int>()>;

/// Returns the installation `named`; if empty, the active one, else that of the first python on PATH. The
/// path is absolute, without symlinks.
Result<std::filesystem::path> find_installation(const std::string& named);

/// Each function adds a command to `app`, which sets `chosen` if the user gives that command.
void add_new(CLI::App& app, Action& chosen, const std::string& command_line);
void add_wrap_install(CLI::App& app, Action& chosen, const std::string& command_line);
void add_wrap_container(CLI::App& app, Action& chosen, const std::string& command_line);
void add_import_tykky(CLI::App& app, Action& chosen, const std::string& command_line);
/// `program` is what was typed after "--".
void add_update(CLI::App& app, Action& chosen, const std::string& command_line,
                std::vector<std::string> program);
void add_dev(CLI::App& app, Action& chosen, std::vector<std::string> program);
void add_log(CLI::App& app, Action& chosen);
void add_rollback(CLI::App& app, Action& chosen, const std::string& command_line);
void add_squash(CLI::App& app, Action& chosen, const std::string& command_line);
/// `typed` is the whole command line.
void add_run(CLI::App& app, Action& chosen, std::vector<std::string> typed);
void add_shell(CLI::App& app, Action& chosen);
void add_inspect(CLI::App& app, Action& chosen);
/// `program` is what was typed after "--".
void add_profile(CLI::App& app, Action& chosen, std::vector<std::string> program);
void add_stats(CLI::App& app, Action& chosen);
/// `check`: whether packages fit the GPUs of this node.
void add_check(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen);
void add_cache(CLI::App& app, Action& chosen);
void add_base(CLI::App& app, Action& chosen);
/// `activate` and `deactivate` are shell functions; as commands they only explain that.
void add_activate(CLI::App& app, Action& chosen);
void add_config(CLI::App& app, Action& chosen);
/// `program` is what was typed after "--".
void add_launch(CLI::App& app, Action& chosen, std::vector<std::string> program);
void add_job(CLI::App& app, Action& chosen, std::vector<std::string> program);
/// `stage`: copies the images to the nodes of a job.
void add_stage(CLI::App& app, Action& chosen);
/// `kernel`: makes a kernelspec for Jupyter.
void add_kernel(CLI::App& app, Action& chosen);

} // namespace containerize::cli
