#include "cli/command.h"
#include "cli/exec.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "manifest/manifest.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

struct RunArguments {
    std::string directory;
    std::vector<std::string> command; ///< parsed only as a check; see command_of()
};

Result<int> run_inside(const std::string& directory, const char* wrapper,
                       const std::vector<std::string>& arguments) {
    auto prefix = TRY(manifest::resolve_installation(directory));
    return become_inside(prefix, wrapper, arguments);
}

// The words after "run DIR", without a "--" before or after DIR. CLI11's own list is not used, because it
// splits "[a,b]" into two arguments.
std::vector<std::string> command_of(const std::vector<std::string>& typed) {
    auto word = typed.begin() + 2;
    const auto skip_mark = [&] {
        if (word != typed.end() && *word == "--") ++word;
    };
    skip_mark();
    ++word;
    skip_mark();
    return {word, typed.end()};
}

} // namespace

void add_run(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("run", "Run a command inside an installation");
    const auto arguments = std::make_shared<RunArguments>();
    add_installation(*command, arguments->directory);
    command->add_option("COMMAND", arguments->command, "The command and its arguments")->required();
    command->positionals_at_end();
    command->footer("Example:\n  containerize run ~/envs/ml -- bash -c 'echo $VIRTUAL_ENV'");
    on(*command, call, [&call, arguments] {
        return run_inside(arguments->directory, "_debug_exec", command_of(call.words));
    });
}

void add_shell(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("shell", "Start a shell inside an installation");
    const auto arguments = std::make_shared<RunArguments>();
    add_installation(*command, arguments->directory);
    on(*command, call, [arguments] {
        // Users inside do not see the wrappers' own advice about installing.
        if (isatty(STDIN_FILENO) == 1)
            fmt::print(
                stderr,
                "This shell cannot change the installation. Use `containerize dev {0}` to change it for "
                "yourself, or `containerize update {0}` to change it for all its users. `exit` leaves "
                "the shell.\n",
                shell_quoted(arguments->directory));
        return run_inside(arguments->directory, "_debug_shell", {});
    });
}

} // namespace containerize::cli
