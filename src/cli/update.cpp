#include "build/update_installation.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "util/log.h"
#include "util/progress.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct UpdateArguments : BuildArguments {
    bool prune = false;
};

constexpr const char* update_examples = R"(Examples:
  containerize update ~/envs/ml -- pip install rich
  containerize update ~/envs/ml -r more.txt
  containerize update ~/envs/ml env.yml              # add or change packages that the file requests
  containerize update ~/envs/ml --prune env.yml      # and remove packages that it does not need
  containerize update ~/envs/ml --post-install patch.sh
  containerize update ~/envs/ml -- bash              # look around, change, exit

Only changes are written, as a new layer. Running programs keep the files that they started with.
If anything fails, or the command returns an error, nothing changes.
`containerize log`, `rollback` and `squash` show, undo and merge updates.)";

} // namespace

Result<int> run_update(const BuildArguments& arguments, bool prune, const std::vector<std::string>& program,
                       const std::string& command_line) {
    auto build = TRY(options_from(arguments, command_line));
    auto updated = TRY(build::update({.build = std::move(build), .command = program, .prune = prune}));
    if (arguments.quiet) return 0;
    if (updated.unchanged)
        fmt::print("{}\n", log::tagged("INFO", "Nothing changed in " + updated.prefix.string() + "."));
    else
        fmt::print("{}\n", log::tagged("INFO", fmt::format("Updated: {}, state {} ({}, {} layer, {}) in {}.",
                                                           updated.prefix.string(), updated.state,
                                                           counted(updated.files, "file"),
                                                           human_bytes(updated.image_bytes),
                                                           counted(updated.commands, "command"),
                                                           human_seconds(updated.seconds))));
    return 0;
}

void add_update(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("update", "Change an installation. Each change is a new layer");
    const auto arguments = std::make_shared<UpdateArguments>();
    command->footer(update_examples);
    add_installation(*command, arguments->prefix);
    add_spec(*command, *arguments);
    take_program(*command, "Program whose changes to the installation are kept")->default_str("none");
    command->add_flag("--prune", arguments->prune, "Remove conda packages that SPEC does not need");
    add_content_options(*command, *arguments);
    add_engine_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    add_timings_option(*command, *arguments);
    on(*command, call, [&call, arguments] {
        return with_timings(
            *arguments, [&] { return run_update(*arguments, arguments->prune, call.program, call.line); });
    });
}

} // namespace containerize::cli
