#include "build/dev.h"

#include "cli/command.h"
#include "core/interrupt.h"

#include <memory>
#include <utility>

namespace containerize::cli {

void add_dev(CLI::App& app, Action& chosen, std::vector<std::string> program) {
    auto* command =
        app.add_subcommand("dev", "Work in an installation as if it were writable, with changes of your own");
    const auto options = std::make_shared<build::DevOptions>();
    options->command = std::move(program);
    command->add_option("DIR", options->prefix, "The installation")->required();
    command
        ->add_option("--overlay", options->overlay,
                     "Where your changes are kept (default: below ~/.local/share/containerize)")
        ->type_name("DIR");
    command->footer(
        "Examples:\n"
        "  containerize dev ~/envs/ml                          # a shell\n"
        "  containerize dev ~/envs/ml -- pip install -e .\n"
        "  containerize dev ~/envs/ml -- pytest\n\n"
        "The installation itself, and who else uses it, sees nothing of it. Remove the overlay's\n"
        "directory to forget all changes; `containerize update` makes changes for everybody.");
    command->callback([&chosen, options] {
        chosen = [options] {
            catch_interrupts();
            return build::develop(*options);
        };
    });
}

} // namespace containerize::cli
