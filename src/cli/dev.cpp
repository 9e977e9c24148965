#include "build/develop.h"
#include "cli/command.h"
#include "core/interrupt.h"

#include <memory>

namespace containerize::cli {

void add_dev(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "dev", "Work in a private, writable view of an installation, with changes of your own");
    const auto options = std::make_shared<build::DevOptions>();
    add_installation(*command, options->prefix);
    take_program(*command, "Program to run")->default_str("a shell");
    command->add_option("--overlay", options->overlay, "Directory for your changes")
        ->type_name("DIR")
        ->default_str("one in ~/.local/share/containerize/overlays");
    command->footer(
        "Examples:\n"
        "  containerize dev ~/envs/ml                          # a shell\n"
        "  containerize dev ~/envs/ml -- pip install -e .\n"
        "  containerize dev ~/envs/ml -- pytest\n\n"
        "The installation itself does not change, and other users see nothing of your changes.\n"
        "To discard all changes, remove the overlay's directory. `containerize update` changes the\n"
        "installation for everybody.");
    on(*command, call, [&call, options] {
        catch_interrupts();
        options->command = call.program;
        return build::develop(*options);
    });
}

} // namespace containerize::cli
