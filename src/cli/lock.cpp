// lock: decides which packages an environment consists of, and writes the list from which `new` installs
// them.
#include "build/build.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "core/filesystem.h"
#include "core/ownership.h"

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::cli {

namespace {

struct LockArguments : BuildArguments {
    std::string output;
};

constexpr const char* lock_examples = R"(Examples:
  containerize lock env.yml -o env.lock && containerize new --prefix ~/envs/ml env.lock
  containerize lock --platform linux-aarch64 --cuda 12.4 env.yml -o grace.lock     # on an x86_64 login node)";

/// The variables in SPEC may be secret: then nobody else may read it.
bool is_private(const std::string& spec) {
    struct stat info {};
    return stat(spec.c_str(), &info) == 0 && (info.st_mode & (S_IRGRP | S_IROTH)) == 0;
}

Result<int> run_lock(const LockArguments& arguments, const std::string& command_line) {
    const auto options = TRY(options_from(arguments, command_line));
    const auto text = TRY(build::lock(options));
    if (arguments.output.empty()) {
        fmt::print("{}", text);
        return 0;
    }
    std::optional<PrivateUmask> of_owner;
    if (is_private(arguments.spec)) of_owner.emplace();
    TRY(write_file(arguments.output, text));
    return 0;
}

} // namespace

void add_lock(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("lock", "List the exact packages of an environment.yml in a lock file");
    const auto arguments = std::make_shared<LockArguments>();
    command->footer(lock_examples);
    command->add_option("SPEC", arguments->spec, "A conda environment.yml")->required()->type_name("FILE");
    command->add_option("-o,--output", arguments->output, "File to write")
        ->type_name("FILE")
        ->default_str("standard output");
    add_solve_options(*command, *arguments);
    add_platform_option(*command, *arguments, "Platform of the machines that will run the programs");
    add_log_options(*command, *arguments);
    on(*command, call, [&call, arguments] { return run_lock(*arguments, call.line); });
}

} // namespace containerize::cli
