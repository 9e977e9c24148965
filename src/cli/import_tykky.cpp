#include "build/build.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "core/interrupt.h"

#include <memory>

namespace containerize::cli {

namespace {

struct ImportArguments : BuildArguments {
    std::string directory;
};

constexpr const char* import_tykky_examples = R"(Example:
  containerize import-tykky /projappl/me/env ~/envs/env

Nothing is built again: the image is copied, and stays as it is; so does DIR. The programs then run on the
host's files instead of those of tykky's container; where their Python is the container's (--slim), that becomes
the base. Installations of conda-containerize, pip-containerize and wrap-install can be imported.)";

} // namespace

void add_import_tykky(CLI::App& app, Action& chosen, const std::string& command_line) {
    auto* command = app.add_subcommand("import-tykky", "Make an installation of what tykky installed");
    const auto arguments = std::make_shared<ImportArguments>();
    command->add_option("DIR", arguments->directory, "The installation of tykky")->required();
    command->add_option("NEWPREFIX", arguments->prefix, "Directory of the new one; absent or empty")
        ->required();
    command->add_flag("--force", arguments->force, "Replace the installation that is there");
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    command->footer(import_tykky_examples);
    command->callback([&chosen, arguments, command_line] {
        chosen = [arguments, command_line]() -> Result<int> {
            catch_interrupts();
            auto options = options_from(*arguments, command_line);
            if (!options) return fail(std::move(options.error()));
            return show_built(build::import_tykky(*options, arguments->directory), arguments->quiet);
        };
    });
}

} // namespace containerize::cli
