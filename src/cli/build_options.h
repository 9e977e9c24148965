// The options that the commands share which build something.
#pragma once

#include "install/build.h"
#include "util/error.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// As they were typed; what is empty, 0 or false was not.
struct BuildArguments {
    std::string prefix, spec, python, installer, base, engine, stage, compression, block_size;
    std::string pre_install, post_install, environ_script, staging_parent, log_file;
    std::vector<std::string> wrapper_paths, requirements, binds, host_profiles;
    std::string gpu;
    bool isolate = false, bind_required = false;
    std::string cuda, environment;
    std::vector<std::string> categories;
    bool offline = false, no_config = false, allow_defaults = false, no_constraints = false, mamba = false,
         uv = false;
    bool no_profile = false;
    std::vector<std::string> profile_commands;
    std::string layout;
    unsigned jobs = 0;
    bool bundle_python = false, system_site_packages = false, keep_files = false, force = false,
         verbose = false, quiet = false;
};

/// Scripts and wrapper paths.
void add_hook_options(CLI::App& command, BuildArguments& arguments);
/// And packages: all that new and update have in common.
void add_content_options(CLI::App& command, BuildArguments& arguments);
/// What a base gets of the host, where there must be one.
void add_container_options(CLI::App& command, BuildArguments& arguments);
/// Which root the programs see, and that.
void add_root_options(CLI::App& command, BuildArguments& arguments);
/// What runs the programs.
void add_engine_option(CLI::App& command, BuildArguments& arguments);
void add_stage_option(CLI::App& command, BuildArguments& arguments);
/// What is recorded at the end of a build.
void add_profile_options(CLI::App& command, BuildArguments& arguments);
/// What comes first in the image.
void add_layout_option(CLI::App& command, BuildArguments& arguments);
/// How it is done: jobs, compression, staging directory, log.
void add_work_options(CLI::App& command, BuildArguments& arguments);

/// What the commands do, once their options are known.
Result<int> run_new(const BuildArguments& arguments, const std::string& command_line);
Result<int> run_update(const BuildArguments& arguments, bool prune, const std::vector<std::string>& program,
                       const std::string& command_line);
Result<int> run_wrap_container(const BuildArguments& arguments, const std::string& command_line);
Result<int> run_wrap_install(const BuildArguments& arguments, bool mask, const std::string& command_line);

/// Tells of what was built, and how to use it.
Result<int> show_built(const Result<install::BuildSummary>& built, bool quiet);

/// What was typed, and what the configuration says about the rest. What it forces wins over what was typed,
/// with a warning. `command_line` is kept in the installation's record.
Result<install::BuildOptions> options_from(const BuildArguments& arguments, const std::string& command_line);

} // namespace containerize::cli
