#include "cli/command.h"
#include "runtime/manifest.h"
#include "util/filesystem.h"

#include <memory>
#include <vector>

#include <unistd.h>

namespace containerize::cli {

namespace {

struct RunArguments {
    std::string directory;
    std::vector<std::string> command;
};

// Both are the installation's own debug wrappers: entering it is their business, in one place.
Result<int> become(const std::string& directory, const char* wrapper,
                   const std::vector<std::string>& arguments) {
    auto prefix = resolve(directory);
    if (!prefix) return fail(std::move(prefix.error()));
    if (!runtime::is_installation(*prefix))
        return fail_input("there is no installation", {}, prefix->string(),
                          "Give a directory that `containerize new --prefix` made.");
    std::string program = (*prefix / "bin" / wrapper).string();
    std::vector<char*> list = {program.data()};
    // CLI11 leaves the "--" that ends our own options in front of the command.
    const std::size_t first = !arguments.empty() && arguments.front() == "--" ? 1 : 0;
    for (std::size_t i = first; i < arguments.size(); ++i)
        list.push_back(const_cast<char*>(arguments[i].c_str()));
    list.push_back(nullptr);
    execv(program.c_str(), list.data());
    return fail_errno("cannot run", program);
}

} // namespace

void add_run(CLI::App& app, Action& chosen) {
    auto* command = app.add_subcommand("run", "Run any command inside an installation");
    const auto arguments = std::make_shared<RunArguments>();
    command->add_option("DIR", arguments->directory, "The installation")->required();
    command->add_option("COMMAND", arguments->command, "Command and arguments, after --")->required();
    command->positionals_at_end();
    command->footer("Example:\n  containerize run ~/envs/ml -- bash -c 'echo $VIRTUAL_ENV'");
    command->callback([&chosen, arguments] {
        chosen = [arguments] { return become(arguments->directory, "_debug_exec", arguments->command); };
    });
}

void add_shell(CLI::App& app, Action& chosen) {
    auto* command = app.add_subcommand("shell", "Open a shell inside an installation");
    const auto arguments = std::make_shared<RunArguments>();
    command->add_option("DIR", arguments->directory, "The installation")->required();
    command->callback([&chosen, arguments] {
        chosen = [arguments] { return become(arguments->directory, "_debug_shell", {}); };
    });
}

} // namespace containerize::cli
