#include "cli/command.h"
#include "cli/exec.h"

#include <string>

namespace containerize::cli {

namespace {

// Reached only if the shell functions are not defined, or were bypassed.
Result<int> explain_function(const std::string& name) {
    const auto functions = installation_tree() / "share/containerize/shell/containerize.sh";
    return fail_input("`" + name + "` must be a function of your shell",
                      "a program cannot change the PATH of the shell that starts it", {},
                      "Define the function with this command, which you can add to ~/.bashrc (or ~/.zshrc, "
                      "~/.kshrc):\n  . " +
                          shell_quoted(functions.string()));
}

CLI::App& add_function(CLI::App& app, Call& call, const std::string& name, const std::string& description) {
    auto* command = app.add_subcommand(name, description + " (a shell function)");
    // Accept any arguments, so that this explanation is shown in all cases.
    command->allow_extras();
    on(*command, call, [name] { return explain_function(name); });
    return *command;
}

} // namespace

void add_activate(CLI::App& app, Call& call) {
    add_function(app, call, "activate", "Put an installation on this shell's PATH")
        .add_option("INSTALLATION", "Its name or directory")
        ->type_size(1);
    add_function(app, call, "deactivate", "Take the active installation off PATH");
}

} // namespace containerize::cli
