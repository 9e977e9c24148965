// The options shared by the commands that build something.
#pragma once

#include "build/build.h"
#include "cli/configured.h"
#include "core/error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// As typed; empty, 0 or false if not given.
struct BuildArguments {
    std::string prefix, spec, python, installer, base, engine, stage, compression, block_size;
    std::string pre_install, post_install, environ_script, staging_parent, log_file;
    std::vector<std::string> wrapper_paths, requirements, binds, host_profiles;
    std::string gpu;
    bool isolate = false, bind_required = false;
    std::string platform, cuda, environment;
    std::optional<std::string> exclude_newer; ///< if given, perhaps empty
    std::vector<std::string> categories, groups, extras;
    bool offline = false, no_config = false, allow_defaults = false, no_constraints = false, mamba = false,
         uv = false;
    bool no_profile = false;
    std::vector<std::string> profile_commands;
    std::string layout;
    unsigned jobs = 0;
    bool bundle_python = false, system_site_packages = false, keep_files = false, force = false,
         verbose = false, quiet = false, timings = false;
};

inline constexpr const char* environ_description =
    "Script to run once, during the build. Its changes to environment variables apply to every launch";

CLI::Option* add_spec(CLI::App& command, BuildArguments& arguments);
/// --prefix and --force.
void add_prefix_options(CLI::App& command, BuildArguments& arguments);
void add_force_option(CLI::App& command, BuildArguments& arguments);
/// Options for what pip or uv installs from a requirements file or a Python project.
void add_requirements_options(CLI::App& command, BuildArguments& arguments);
/// Options for how conda packages are chosen.
void add_solve_options(CLI::App& command, BuildArguments& arguments);
void add_platform_option(CLI::App& command, BuildArguments& arguments, const char* description);
/// Options for scripts and wrapper paths.
void add_hook_options(CLI::App& command, BuildArguments& arguments);
/// Options that `new` and `update` share: packages, scripts and wrapper paths.
void add_content_options(CLI::App& command, BuildArguments& arguments);
/// Options for what a base gets from the host.
void add_container_options(CLI::App& command, BuildArguments& arguments);
/// Options for the root that programs see, including those of add_container_options().
void add_root_options(CLI::App& command, BuildArguments& arguments);
/// The option for what runs the programs.
void add_engine_option(CLI::App& command, BuildArguments& arguments);
void add_stage_option(CLI::App& command, BuildArguments& arguments);
/// Options for recording what programs read first.
void add_profile_options(CLI::App& command, BuildArguments& arguments);
/// The option for the order of files in the image.
void add_layout_option(CLI::App& command, BuildArguments& arguments);
/// Options for the work itself: jobs, compression, staging directory, log.
void add_work_options(CLI::App& command, BuildArguments& arguments);
/// Only what a command says, on the terminal and in a file. add_work_options() has these, too.
void add_log_options(CLI::App& command, BuildArguments& arguments);
/// --timings, for commands that run within with_timings().
void add_timings_option(CLI::App& command, BuildArguments& arguments);

/// Runs a command, and then shows the chart of --timings if that was given, whether the command failed or
/// not.
Result<int> with_timings(const BuildArguments& arguments, const std::function<Result<int>()>& command);

/// The commands themselves, called with parsed options. They return the exit code.
Result<int> run_new(const BuildArguments& arguments, const std::string& command_line);
Result<int> run_update(const BuildArguments& arguments, bool prune, const std::vector<std::string>& program,
                       const std::string& command_line);
Result<int> run_wrap_container(const BuildArguments& arguments, const std::string& command_line);
Result<int> run_wrap_install(const BuildArguments& arguments, bool mask, const std::string& command_line);

/// Prints what was built and how to use it. Returns the exit code.
Result<int> show_built(const Result<build::BuildSummary>& built, bool quiet);

/// Combines typed options with the configuration. Forced values override typed ones, with a warning.
/// `command_line` is recorded in the installation. From now on, interrupts end the work in an orderly way.
Result<inputs::BuildOptions> options_from(const BuildArguments& arguments, const std::string& command_line);
Result<inputs::BuildOptions> options_from(const BuildArguments& arguments, const std::string& command_line,
                                          const Configured& configured);

} // namespace containerize::cli
