// upgrade: gives installations this version's programs.
#include "build/upgrade.h"

#include "cli/build_arguments.h"
#include "cli/command.h"
#include "core/exit_code.h"
#include "core/interrupt.h"
#include "core/printable.h"
#include "core/version.h"
#include "util/progress.h"
#include "util/redact.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct UpgradeArguments : BuildArguments {
    std::vector<std::string> directories;
};

constexpr const char* upgrade_examples = R"(Examples:
  containerize upgrade ~/envs/ml
  containerize upgrade /apps/envs/*            # if one fails, the others are upgraded nevertheless

Only the two programs that start commands are replaced, in `bin`, in other directories of wrappers and in `libexec`. The
environment stays as it is. Running programs are not disturbed.)";

Status upgrade_one(UpgradeArguments arguments, const std::string& directory,
                   const std::string& command_line) {
    arguments.prefix = directory;
    auto options = TRY(options_from(arguments, command_line));
    const auto upgraded = TRY(build::upgrade(options));
    if (arguments.quiet) return {};
    if (upgraded.unchanged)
        fmt::print("Up to date: {}, version {}.\n", upgraded.prefix.string(), this_version);
    else
        fmt::print("Upgraded: {}, from version {} to {}, {}.\n", upgraded.prefix.string(),
                   printable_line(upgraded.from), this_version, counted(upgraded.commands, "command"));
    return {};
}

Result<int> run_upgrade(const UpgradeArguments& arguments, const std::string& command_line) {
    if (arguments.directories.size() == 1) {
        TRY(upgrade_one(arguments, arguments.directories.front(), command_line));
        return 0;
    }
    int code = 0;
    for (const auto& directory : arguments.directories) {
        auto done = upgrade_one(arguments, directory, command_line);
        if (!done && interrupted()) return fail(std::move(done.error()));
        if (done) continue;
        std::fflush(stdout); // the reports stay in order
        fmt::print(stderr, "containerize: {}\n", redacted(to_string(done.error())));
        const bool by_input = done.error().fault == Fault::input && code != exit_failure;
        code = by_input ? exit_usage : exit_failure;
    }
    return code;
}

} // namespace

void add_upgrade(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "upgrade", "Replace an installation's copies of containerize's programs by those of this version");
    const auto arguments = std::make_shared<UpgradeArguments>();
    command->add_option("DIR", arguments->directories, "The installations")->required();
    add_log_options(*command, *arguments);
    command->footer(upgrade_examples);
    on(*command, call, [&call, arguments] { return run_upgrade(*arguments, call.line); });
}

} // namespace containerize::cli
