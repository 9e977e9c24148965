// The interface of the commands: each adds its options to the tree and provides the function that runs it.
#pragma once

#include "cli/tree.h"
#include "core/error.h"
#include "core/text.h"

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

inline constexpr const char* json_description = "Print JSON, for programs";
/// The installation that find_installation() finds without a name.
inline constexpr const char* active = "the active one, else that of the first python on PATH";

/// What commands take that show something about an installation.
struct ShowArguments {
    std::string directory;
    bool as_json = false;
};

/// Sets what is done if the user gives `command`.
void on(CLI::App& command, Call& call, Action action);
/// Adds the required positional DIR.
void add_installation(CLI::App& command, std::string& directory,
                      const std::string& description = "The installation");
/// Adds the positional COMMAND, which stands for Call::program.
CLI::Option* take_program(CLI::App& command, const std::string& description);
/// Adds --env and --site.
void add_environment_option(CLI::App& command, std::string& directory);
void add_site_option(CLI::App& command, std::string& site);

/// Each of these adds a command to `app`.
void add_new(CLI::App& app, Call& call);
void add_lock(CLI::App& app, Call& call);
void add_wrap_install(CLI::App& app, Call& call);
void add_wrap_container(CLI::App& app, Call& call);
void add_import_tykky(CLI::App& app, Call& call);
void add_update(CLI::App& app, Call& call);
void add_dev(CLI::App& app, Call& call);
void add_log(CLI::App& app, Call& call);
void add_rollback(CLI::App& app, Call& call);
void add_squash(CLI::App& app, Call& call);
void add_upgrade(CLI::App& app, Call& call);
void add_run(CLI::App& app, Call& call);
void add_exec(CLI::App& app, Call& call);
void add_shell(CLI::App& app, Call& call);
void add_export(CLI::App& app, Call& call);
void add_inspect(CLI::App& app, Call& call);
void add_profile(CLI::App& app, Call& call);
void add_stats(CLI::App& app, Call& call);
void add_check(CLI::App& app, Call& call);
void add_doctor(CLI::App& app, Call& call);
void add_cache(CLI::App& app, Call& call);
void add_base(CLI::App& app, Call& call);
/// `activate` and `deactivate` are shell functions; as commands they only explain that.
void add_activate(CLI::App& app, Call& call);
void add_config(CLI::App& app, Call& call);
void add_launch(CLI::App& app, Call& call);
void add_job(CLI::App& app, Call& call);
void add_stage(CLI::App& app, Call& call);
void add_kernel(CLI::App& app, Call& call);

} // namespace containerize::cli
