#include "build/update.h"

#include "cli/build_options.h"
#include "cli/command.h"
#include "core/interrupt.h"
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
  containerize update ~/envs/ml env.yml              # packages that it asks for are added or changed
  containerize update ~/envs/ml --prune env.yml      # and those that it does not need removed
  containerize update ~/envs/ml --post-install patch.sh
  containerize update ~/envs/ml -- bash              # look around, change, exit

Only what changed is written, as a layer of its own. Programs that run keep what they started with.
If anything fails, or the command ends with an error, nothing changes.
`containerize log`, `rollback` and `squash` show, undo and merge updates.)";

} // namespace

Result<int> run_update(const BuildArguments& arguments, bool prune, const std::vector<std::string>& program,
                       const std::string& command_line) {
    catch_interrupts();
    auto build = options_from(arguments, command_line);
    if (!build) return fail(std::move(build.error()));
    auto updated = build::update({.build = std::move(*build), .command = program, .prune = prune});
    if (!updated) return fail(std::move(updated.error()));
    if (arguments.quiet) return 0;
    if (updated->unchanged)
        fmt::print("{}\n", log::tagged("INFO", "Nothing changed in " + updated->prefix.string() + "."));
    else
        fmt::print("{}\n",
                   log::tagged("INFO",
                               fmt::format("Updated: {}, state {} ({} files, {} layer, {} commands) in {}.",
                                           updated->prefix.string(), updated->state,
                                           human_count(updated->files), human_bytes(updated->image_bytes),
                                           human_count(updated->commands), human_seconds(updated->seconds))));
    return 0;
}

void add_update(CLI::App& app, Action& chosen, const std::string& command_line,
                std::vector<std::string> program) {
    auto* command = app.add_subcommand("update", "Change an installation; each change is one more layer");
    const auto arguments = std::make_shared<UpdateArguments>();
    command->footer(update_examples);
    command->add_option("DIR", arguments->prefix, "The installation")->required();
    command->add_option("SPEC", arguments->spec,
                        "A conda environment.yml, a lock file, or a pip requirements file");
    add_content_options(*command, *arguments);
    command->add_flag("--prune", arguments->prune, "Remove packages of conda that SPEC does not need");
    add_engine_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    command->callback([&chosen, arguments, command_line, program = std::move(program)] {
        chosen = [arguments, command_line, program] {
            return run_update(*arguments, arguments->prune, program, command_line);
        };
    });
}

} // namespace containerize::cli
