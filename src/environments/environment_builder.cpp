#include "environments/environment_builder.h"

#include "util/process.h"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

namespace containerize::environments {

Command BuildContext::inside(std::vector<std::string> argv) const {
    return {
        .argv = std::move(argv), .environment = environment, .working_directory = prefix, .in_child = join};
}

Result<Outcome> BuildContext::run_hook(const std::filesystem::path& script, Stage& stage) const {
    auto command = inside({"bash", "-e", script.string()});
    command.working_directory = inputs.working_directory;
    // Variables that scripts written for tykky expect.
    const std::pair<const char*, std::string> known[] = {{"CW_INSTALLATION_PATH", prefix.string()},
                                                         {"CW_INSTALLATION_PREFIX", prefix.string()},
                                                         {"CW_WORKDIR", inputs.working_directory.string()},
                                                         {"CW_BUILD_TMPDIR", staging.string()},
                                                         {"CW_NUM_CPUS", std::to_string(jobs)},
                                                         {"CW_MODE", inputs.mode}};
    for (const auto& [name, value] : known)
        (*command.environment)[name] = value;
    return run_successfully(std::move(command), stage, "the script failed");
}

Result<Outcome> BuildContext::run_successfully(Command command, Stage& stage, const std::string& what) {
    command.on_line = [&stage](std::string_view line) { stage.detail(line); };
    auto outcome = run(command);
    if (!outcome || outcome->ok()) return outcome;
    const auto said = tail(outcome->output, 12);
    return fail(
        {.what = what,
         .why = "exit code " + std::to_string(outcome->exit_code) + (said.empty() ? "" : "\n" + said)});
}

image::WriterOptions BuildContext::writer_options() const {
    return {.compression = options.compression,
            .block_size = options.block_size,
            .jobs = jobs,
            .memory = memory_of_writer(),
            .source_date_epoch = inputs.source_date_epoch,
            .directory_mode = image::mode_for_sharing(S_IFDIR | 0755U, options.umask_bits)};
}

std::uint64_t BuildContext::memory_of_writer() const {
    return std::clamp<std::uint64_t>(resources.memory / 8, 64U << 20U, 512U << 20U);
}

Status create_environment(EnvironmentBuilder& builder, BuildContext& context) {
    TRY(builder.create());
    // Scripts written for tykky use the last two names.
    for (const char* name : {"CONTAINERIZE_PREFIX", "env_root", "install_root"})
        context.environment[name] = context.prefix.string();
    const std::string path =
        context.environment.contains("PATH") ? context.environment["PATH"] : "/usr/bin:/bin";
    context.environment["PATH"] = (context.prefix / "bin").string() + ":" + path;
    return {};
}

Activation path_activation() {
    return {.changes = {{launch::EnvironmentChange::Kind::prepend, "PATH", "${prefix}/bin"}}};
}

Activation venv_activation() {
    using Kind = launch::EnvironmentChange::Kind;
    return {.changes = {{Kind::set, "VIRTUAL_ENV", "${prefix}"},
                        {Kind::unset, "PYTHONHOME", {}},
                        {Kind::prepend, "PATH", "${prefix}/bin"}}};
}

Result<std::string> name_of_python(const BuildContext& context) {
    std::error_code failed;
    if (!std::filesystem::exists(std::filesystem::symlink_status(context.root() / "bin/python", failed)))
        return std::string();
    constexpr const char* question =
        "import os, sysconfig; print(os.path.basename(sysconfig.get_path('stdlib')))";
    const auto answer = TRY(capture(context.inside({context.python().string(), "-c", question})));
    if (!answer.ok())
        return fail({.what = "the environment's Python does not run here", .why = tail(answer.errors, 5)});
    return answer.output.substr(0, answer.output.find('\n'));
}

} // namespace containerize::environments
