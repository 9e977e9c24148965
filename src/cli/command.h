// What a command of the command line is: options that register themselves, and a function that runs it.
#pragma once

#include "util/error.h"
#include "util/text.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// Returns the process's exit code.
using Action = std::function<Result<int>()>;

/// The installation that was named, is active, or whose python is on PATH; absolute, without links.
Result<std::filesystem::path> find_installation(const std::string& named);

/// Each command adds its options to `app` and leaves in `chosen` what to do if the user asks for it.
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
/// `check`: what packages were built for, and what this node has.
void add_check(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen);
void add_cache(CLI::App& app, Action& chosen);
void add_base(CLI::App& app, Action& chosen);
/// `activate` and `deactivate`, which are shell functions: the program can only say so.
void add_activate(CLI::App& app, Action& chosen);
void add_config(CLI::App& app, Action& chosen);
/// `program` is what was typed after "--".
void add_launch(CLI::App& app, Action& chosen, std::vector<std::string> program);
void add_job(CLI::App& app, Action& chosen, std::vector<std::string> program);
/// `stage`: copies of the images on the nodes of a job.
void add_stage(CLI::App& app, Action& chosen);
/// `kernel`: a kernelspec of Jupyter.
void add_kernel(CLI::App& app, Action& chosen);

} // namespace containerize::cli
