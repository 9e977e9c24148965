// lock: decides which packages an environment consists of, and writes the list from which `new` installs
// them.
#include "build/build.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output_file.h"

#include <memory>

namespace containerize::cli {

namespace {

struct LockArguments : BuildArguments {
    std::string output, format;
};

constexpr const char* lock_examples = R"(Examples:
  containerize lock env.yml -o env.lock && containerize new --prefix ~/envs/ml env.lock
  containerize lock requirements.txt -o pylock.toml && containerize new --prefix ~/envs/ml pylock.toml
  containerize lock env.yml -o conda-lock.yml
  containerize lock --platform linux-aarch64 --cuda 12.4 env.yml -o grace.lock     # on an x86_64 login node)";

Result<int> run_lock(const LockArguments& arguments, const std::string& command_line) {
    TRY(check_output(arguments.output, arguments.spec));
    const auto options = TRY(options_from(arguments, command_line));
    const auto list = TRY(build::lock(options, {.name = arguments.format, .output = arguments.output}));
    TRY(write_output(arguments.output, arguments.spec, list));
    return 0;
}

} // namespace

void add_lock(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "lock", "List the exact packages of an environment.yml or a requirements file in a lock file");
    const auto arguments = std::make_shared<LockArguments>();
    command->footer(lock_examples);
    command
        ->add_option("SPEC", arguments->spec,
                     "A conda environment.yml, a pixi.toml, a requirements file or a Python project")
        ->required()
        ->type_name("FILE");
    add_output_option(*command, arguments->output);
    command
        ->add_option(
            "--format", arguments->format,
            "Format of the lock. `pylock` is for requirements, the others are for conda environments")
        ->check(offer("own,pylock,explicit,conda-lock,pixi"))
        ->default_str("told by the name of -o, else own or pylock");
    add_requirements_options(*command, *arguments);
    add_configured(*command, config::Key::python, arguments->python)->type_name("PYTHON");
    add_solve_options(*command, *arguments);
    add_platform_option(*command, *arguments, "Platform of the machines that will run the programs");
    on(*command, call, [&call, arguments] { return run_lock(*arguments, call.line); });
}

} // namespace containerize::cli
