// profile: records what programs read first.
#include "build/record_profile.h"
#include "cli/command.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "manifest/manifest.h"
#include "util/log.h"
#include "util/progress.h"

#include <memory>
#include <utility>

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

What the command reads of the installation is noted beside its images. Sessions that are started later read that
ahead, in few large requests. What was recorded before still counts, after that, unless --replace is given.)";

Result<int> record(const ProfileArguments& arguments, const std::vector<std::string>& program) {
    catch_interrupts();
    auto prefix = resolve(arguments.directory);
    if (!prefix) return fail(std::move(prefix.error()));
    if (!manifest::is_installation(*prefix)) return manifest::no_installation(*prefix);
    std::error_code failed;
    const auto tool = fs::read_symlink("/proc/self/exe", failed);
    build::ProfileRequest request{.commands = {},
                                  .at_terminal = true,
                                  .replace = arguments.replace,
                                  .share = tool.parent_path().parent_path() / "share/containerize",
                                  .staging_parent = {}};
    if (!program.empty()) request.commands.push_back(program);
    auto recording = build::record_profile(*prefix, request);
    if (!recording) return fail(std::move(recording.error()));
    if (arguments.replace && recording->exit_code != 0)
        log::warn(fmt::format("the command ended with exit code {}, so the earlier recording is also kept.",
                              recording->exit_code));
    fmt::print(stderr, "Recorded: sessions of {} will read {} ahead, in {} requests.\n", prefix->string(),
               human_bytes(recording->coverage.bytes), human_count(recording->coverage.requests));
    return recording->exit_code;
}

} // namespace

void add_profile(CLI::App& app, Action& chosen, std::vector<std::string> program) {
    auto* command =
        app.add_subcommand("profile", "Record what a program reads first, for a fast start on slow storage");
    const auto arguments = std::make_shared<ProfileArguments>();
    command->add_option("DIR", arguments->directory, "The installation")->required();
    command->add_flag("--replace", arguments->replace, "Forget what was recorded before");
    command->footer(profile_examples);
    command->callback([&chosen, arguments, program = std::move(program)] {
        chosen = [arguments, program] { return record(*arguments, program); };
    });
}

} // namespace containerize::cli
