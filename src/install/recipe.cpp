#include "install/recipe.h"

#include "install/scripts.h"
#include "pip/installer.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/redact.h"

#include <algorithm>
#include <utility>

namespace containerize::install {

Command Workshop::inside(std::vector<std::string> argv) const {
    return {.argv = std::move(argv),
            .environment = environment,
            .working_directory = prefix,
            .in_child = join,
            .on_line = {}};
}

Result<Outcome> Workshop::run_inside(std::vector<std::string> argv, Stage& stage,
                                     const std::string& what) const {
    return run_successfully(inside(std::move(argv)), stage, what);
}

Result<Outcome> Workshop::run_hook(const std::filesystem::path& script, Stage& stage) const {
    auto command = inside({"bash", "-e", script.string()});
    command.working_directory = inputs.working_directory;
    // What scripts written for tykky may ask for.
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

Result<Outcome> Workshop::run_successfully(Command command, Stage& stage, const std::string& what) const {
    command.on_line = [&stage](std::string_view line) { stage.detail(line); };
    auto outcome = run(command);
    if (!outcome || outcome->ok()) return outcome;
    const auto said = tail(outcome->output, 12);
    return fail({.what = what,
                 .why = "exit code " + std::to_string(outcome->exit_code) + (said.empty() ? "" : "\n" + said),
                 .where = {},
                 .hint = {}});
}

image::WriterOptions Workshop::writer_options() const {
    return {.compression = options.compression,
            .block_size = options.block_size,
            .jobs = jobs,
            .memory = std::clamp<std::uint64_t>(resources.memory / 8, 64U << 20U, 512U << 20U),
            .source_date_epoch = inputs.source_date_epoch};
}

std::vector<runtime::EnvironmentChange> path_activation() {
    return {{runtime::EnvironmentChange::Kind::prepend, "PATH", "${prefix}/bin"}};
}

std::vector<runtime::EnvironmentChange> venv_activation() {
    using Kind = runtime::EnvironmentChange::Kind;
    return {{Kind::set, "VIRTUAL_ENV", "${prefix}"},
            {Kind::unset, "PYTHONHOME", {}},
            {Kind::prepend, "PATH", "${prefix}/bin"}};
}

std::string name_of_python(const Workshop& shop) {
    std::error_code failed;
    if (!std::filesystem::exists(std::filesystem::symlink_status(shop.root() / "bin/python", failed)))
        return {};
    constexpr const char* question =
        "import os, sysconfig; print(os.path.basename(sysconfig.get_path('stdlib')))";
    const auto answer = capture(shop.inside({shop.python().string(), "-c", question}));
    if (!answer || !answer->ok()) return {};
    return answer->output.substr(0, answer->output.find('\n'));
}

std::string requirements_text(const std::vector<spec::Located>& lines,
                              const std::filesystem::path& directory) {
    std::string text;
    for (const auto& line : lines) {
        std::string content = line.text;
        for (const std::string_view option : {"-r", "--requirement", "-c", "--constraint"}) {
            if (!content.starts_with(option)) continue;
            const auto start = content.find_first_not_of(" =", option.size());
            if (start == content.npos || (start == option.size() && option.size() > 2)) continue;
            const auto file = content.substr(start);
            if (file.find("://") == file.npos)
                content = std::string(option) + " " + (directory / file).lexically_normal().string();
            break;
        }
        text += content + "\n";
    }
    return text;
}

Status install_requirements(Workshop& shop, const RequirementsToInstall& requirements, Stage& stage) {
    auto configuration = capture(shop.inside({shop.python().string(), "-m", "pip", "config", "list"}));
    if (!configuration) return fail(std::move(configuration.error()));
    for (const auto& line : requirements.read.lines) // their variables are replaced
        remember_secrets_in(line.text);
    remember_secrets_in(configuration->output);
    auto choice = pip::choose_installer(shop.options.installer, shop.inputs.uv, configuration->output,
                                        requirements.read, shop.inputs.environment);
    if (!choice) return fail(std::move(choice.error()));
    if (!choice->warning.empty()) log::warn(choice->warning);
    log::detail("installing with " + choice->reason);
    const bool by_uv = choice->installer == pip::Installer::uv;
    // Where pip clones what is editable: of an environment of conda it would be the working directory.
    auto environment = shop.environment;
    environment.emplace("PIP_SRC", (shop.prefix / "src").string());
    auto installed = pip::install(*choice,
                                  {.python = shop.python(),
                                   .requirements = requirements.file,
                                   .working_directory = requirements.directory,
                                   .constraints = requirements.constraints,
                                   .report = requirements.report,
                                   .environment = std::move(environment),
                                   .in_child = shop.join},
                                  [&stage](std::string_view line) { stage.detail(line); });
    if (!installed && !requirements.constraints.empty() && !interrupted())
        installed.error().hint += "What conda installed stays as it is: if that is in the way, ask conda for "
                                  "another version, or give --no-constraints.";
    if (!installed) return installed;
    shop.record["installer"] = by_uv ? "uv" : "pip";
    if (auto repaired = repair_scripts(shop.root() / "bin", shop.prefix); !repaired) return repaired;
    stage.finish(std::string("with ") + (by_uv ? "uv" : "pip"));
    return {};
}

} // namespace containerize::install
