// profile: records what programs read first.
#include "build/record_profile.h"
#include "cli/command.h"
#include "cli/exec.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "manifest/manifest.h"
#include "prefix/prefix.h"
#include "util/log.h"
#include "util/progress.h"

#include <memory>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct ProfileArguments {
    std::string directory;
    bool replace = false;
};

constexpr const char* profile_examples = R"(Examples:
  containerize profile ~/envs/ml -- python train.py --steps 1
  containerize profile ~/envs/ml                     # the imports of all its packages
  containerize profile ~/envs/ml --replace -- python train.py --steps 1

What the command reads first is recorded beside the images. Later sessions read it ahead, in a few large requests.
Earlier records are kept, after the new one, unless you give --replace.)";

Result<int> record(const ProfileArguments& arguments, const std::vector<std::string>& program) {
    catch_interrupts();
    auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    TRY(prefix::check_maintainer(prefix));
    const auto manifest = TRY(manifest::read_manifest(prefix));
    TRY(manifest::check_not_newer(manifest, prefix));
    build::ProfileRequest request{.at_terminal = true,
                                  .replace = arguments.replace,
                                  .share = installation_tree() / "share/containerize"};
    if (!program.empty()) request.commands.push_back(program);
    auto recording = TRY(build::record_profile(prefix, request));
    if (arguments.replace && recording.exit_code != 0)
        log::warn(fmt::format("the command ended with exit code {}, so the earlier recording is also kept.",
                              recording.exit_code));
    fmt::print(stderr, "Recorded: sessions of {} will read {} ahead, in {}.\n", prefix.string(),
               human_bytes(recording.coverage.bytes), counted(recording.coverage.requests, "request"));
    return recording.exit_code;
}

} // namespace

void add_profile(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "profile", "Record what a program reads first, to start it faster on slow storage");
    const auto arguments = std::make_shared<ProfileArguments>();
    add_installation(*command, arguments->directory);
    take_program(*command, "Program to run")->default_str("the imports of all packages");
    command->add_flag("--replace", arguments->replace, "Discard what was recorded before");
    command->footer(profile_examples);
    on(*command, call, [&call, arguments] { return record(*arguments, call.program); });
}

} // namespace containerize::cli
