// lock: decides which packages an environment consists of, and writes the list from which `new` installs
// them.
#include "build/build.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "core/filesystem.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include <sys/stat.h>

namespace containerize::cli {

namespace fs = std::filesystem;

namespace {

struct LockArguments : BuildArguments {
    std::string output;
};

constexpr const char* lock_examples = R"(Examples:
  containerize lock env.yml -o env.lock && containerize new --prefix ~/envs/ml env.lock
  containerize lock requirements.txt -o pylock.toml && containerize new --prefix ~/envs/ml pylock.toml
  containerize lock --platform linux-aarch64 --cuda 12.4 env.yml -o grace.lock     # on an x86_64 login node)";

/// Fails if `output` is no place for a new file: in no directory, its input, a device, or a link that would
/// be replaced.
Status check_output(const fs::path& output, const fs::path& spec) {
    struct stat info {};
    std::error_code failed;
    if (const auto directory = fs::absolute(output, failed).parent_path(); !quiet::is_directory(directory))
        return fail_input("this directory does not exist", {}, directory.string(),
                          "Create it, or give another -o FILE.");
    if (lstat(output.c_str(), &info) != 0) return {};
    if (fs::equivalent(output, spec, failed))
        return fail_input("the lock would replace its input", {}, output.string(), "Give another -o FILE.");
    if (!S_ISREG(info.st_mode))
        return fail_input("only a regular file can be replaced by a lock", {}, output.string(),
                          "Give another -o FILE, or none for standard output.");
    return {};
}

/// The variables in SPEC may be secret, so nobody else may read the lock who cannot read that.
void limit_readers_to_those_of(const fs::path& spec) {
    struct stat info {};
    const mode_t mode = stat(spec.c_str(), &info) == 0 ? info.st_mode : 0;
    const mode_t hidden = ~mode & (S_IRWXG | S_IRWXO);
    umask(umask(hidden) | hidden);
}

Result<int> run_lock(const LockArguments& arguments, const std::string& command_line) {
    if (!arguments.output.empty()) TRY(check_output(arguments.output, arguments.spec));
    const auto options = TRY(options_from(arguments, command_line));
    const auto text = TRY(build::lock(options));
    if (arguments.output.empty()) {
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    limit_readers_to_those_of(arguments.spec);
    TRY(write_file(arguments.output, text));
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
                     "A conda environment.yml, a requirements file or a Python project")
        ->required()
        ->type_name("FILE");
    command->add_option("-o,--output", arguments->output, "File to write")
        ->type_name("FILE")
        ->default_str("standard output");
    add_requirements_options(*command, *arguments);
    add_configured(*command, config::Key::python, arguments->python)->type_name("PYTHON");
    add_solve_options(*command, *arguments);
    add_platform_option(*command, *arguments, "Platform of the machines that will run the programs");
    on(*command, call, [&call, arguments] { return run_lock(*arguments, call.line); });
}

} // namespace containerize::cli
