#include "cli/tykky.h"

#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/tykky_settings.h"
#include "core/exit_code.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/variables.h"
#include "manifest/manifest.h"
#include "spec/spec.h"
#include "util/log.h"
#include "util/redact.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

constexpr std::span names = std::span(programs).subspan<1>();

/// Typed options, including those that our own commands do not have.
struct TykkyArguments : BuildArguments {
    std::string file;     ///< environment, requirements, software or container
    std::string settings; ///< a YAML file
    std::string python_version;
    bool no_cache = false, slim = false, mask = false;
};

/// tykky's levels: 0 errors, 1 warnings, 2 progress, 3 everything.
void apply_log_level(BuildArguments& arguments) {
    const auto text = variable("CW_LOG_LEVEL");
    if (text.empty()) return;
    const int level = to_number<int>(text).value_or(0);
    arguments.quiet = level < 2;
    arguments.verbose = level > 2;
}

/// Applies tykky's environment variables. conda's configuration is ignored unless CW_ENABLE_CONDARC is set.
void apply_environment(TykkyArguments& arguments) {
    apply_log_level(arguments);
    if (const char* directory = value_of("CW_BUILD_TMPDIR")) arguments.staging_parent = directory;
    arguments.no_config = value_of("CW_ENABLE_CONDARC") == nullptr;
    arguments.keep_files = value_of("CW_DEBUG_KEEP_FILES") != nullptr;
    if (!arguments.no_cache) return;
    setenv("PIP_NO_CACHE_DIR", "1", 1);
    setenv("UV_NO_CACHE", "1", 1);
}

/// The default prefix is the working directory. A missing prefix is created later.
Status prepare_prefix(TykkyArguments& arguments) {
    std::error_code failed;
    const bool by_default = arguments.prefix.empty();
    if (by_default) arguments.prefix = fs::current_path(failed).string();
    const fs::path prefix = arguments.prefix;
    if (!fs::exists(prefix, failed)) {
        if (!arguments.quiet)
            fmt::print("{}\n", log::tagged("INFO", "Installation directory " + prefix.string() +
                                                       " does not exist. It will be created."));
        std::fflush(stdout);
    } else if (access(prefix.c_str(), W_OK | X_OK) != 0) {
        return fail_input("the installation directory is not writable", {}, prefix.string(),
                          "Choose a directory of your own with --prefix.");
    }
    // Building again into an installation replaces it.
    arguments.force = true;
    if (manifest::is_installation(prefix))
        log::warn("the installation in " + prefix.string() + " will be replaced, with all its states.");
    else if (by_default && !fs::is_empty(prefix, failed))
        return fail_input("no --prefix is given, and the working directory is not empty", {}, prefix.string(),
                          "Give --prefix DIR.");
    return {};
}

enum class Kind { conda, pip };

/// The file's content decides what is built; here the command's name must agree.
Status check_kind(Kind kind, const std::string& file) {
    auto found = TRY(spec::recognise_supported(file));
    const bool of_pip = std::holds_alternative<spec::RequirementsReader>(spec::format_of(found).reader);
    if (of_pip == (kind == Kind::pip)) return {};
    return kind == Kind::conda
               ? fail_input("conda-containerize does not accept " + spec::describe(found), {}, file,
                            "Use pip-containerize, or give an environment file and pass this file with -r.")
               : fail_input("pip-containerize does not accept " + spec::describe(found), {}, file,
                            "Use conda-containerize.");
}

/// Whether a hint names an option that `ours` has but `theirs` lacks.
bool names_option_lacking(std::string_view hint, const CLI::App& theirs, const CLI::App& ours) {
    constexpr std::string_view of_options = "abcdefghijklmnopqrstuvwxyz-";
    for (auto at = hint.find("--"); at != hint.npos;) {
        const auto end = std::min(hint.find_first_not_of(of_options, at), hint.size());
        const std::string option(hint.substr(at, end - at));
        if (option.size() > 2 && theirs.get_option_no_throw(option) == nullptr &&
            ours.get_option_no_throw(option) != nullptr)
            return true;
        at = hint.find("--", end);
    }
    return false;
}

/// Rewords hints that name options of our commands for the users of tykky's.
void fit_hint(std::string& hint, const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    replace_all(hint, "--tmpdir", "CW_BUILD_TMPDIR");
    if (command.get_option_no_throw("--pyver") != nullptr) replace_all(hint, "--python", "--pyver");
    if (command.get_name() == "advanced") return; // accepts everything that ours do
    const std::string name = chosen.empty()                   ? app.get_name()
                             : command.get_name() == "update" ? "update"
                                                              : "new";
    Call unused;
    const auto ours = make_tree(programs.front(), unused);
    if (!names_option_lacking(hint, command, *ours->get_subcommand(name))) return;
    hint += "\n`containerize " + name + "` has that option, and otherwise does the same as this command.";
}

const char* description_of(std::string_view name) {
    if (name == names[0]) return "Create or change an installation of conda packages";
    if (name == names[1]) return "Create or change an installation of pip packages";
    if (name == names[2]) return "Create wrappers for the programs of a container image";
    return "Put software that is installed in a directory into an image, with wrappers for its programs";
}

/// The tree of one of tykky's commands, and what it does.
class TykkyTree : public CLI::App {
public:
    TykkyTree(std::string_view name, Call& call)
        : App(std::string(description_of(name)), std::string(name)), call_(call) {
        set_help_flag("-h,--help", "show this help message and exit");
        formatter(std::make_shared<Help>());
        get_formatter()->label("Usage", "usage");
        require_subcommand(0, 1);
        option_defaults()->configurable(false);
        if (name == names[0]) add_for_conda();
        if (name == names[1]) add_for_pip();
        if (name == names[2]) add_for_container();
        if (name == names[3]) add_for_install();
    }

private:
    void add_for_conda() {
        auto& create = add_new("A conda environment file, an explicit list or a lock file", Kind::conda);
        create.add_flag("--mamba", arguments_.mamba, "Accepted; there is only one solver");
        add_uv(create);
        add_requirements(create);
        add_common(create);
        auto& update = add_update();
        add_requirements(update);
        add_common(update);
        add_advanced("conda");
    }

    void add_for_pip() {
        auto& create = add_new("A pip requirements file", Kind::pip);
        add_uv(create);
        create.add_flag("--slim", arguments_.slim,
                        "Use a small container image with Python as the base image");
        create.add_option("--pyver", arguments_.python_version, "Version of Python to use")->type_name("X.Y");
        create.add_flag("--system-site-packages", arguments_.system_site_packages,
                        "Let programs see the packages of the interpreter and of the user");
        add_common(create);
        auto& update = add_update();
        add_requirements(update);
        add_common(update);
        add_advanced("venv");
    }

    void add_for_install() {
        add_option("dir", arguments_.file, "Directory of the software")->required()->type_name("DIR");
        add_prefix(*this);
        add_flag("--mask", arguments_.mask,
                 "Programs that use dir see the image there, not the directory on disk");
        add_settings();
        add_common(*this);
        on(*this, [this] { return wrap_install(); });
    }

    void add_for_container() {
        add_option("container", arguments_.file,
                   "Container image: a file, a directory, docker://NAME or oci:DIR")
            ->required()
            ->type_name("FILE");
        add_prefix(*this);
        add_option("-w,--wrapper-paths", arguments_.wrapper_paths,
                   "Directories of the image, or single programs, that get wrappers, separated by commas")
            ->type_name("PATHS")
            ->delimiter(',')
            ->allow_extra_args(false);
        add_option("--environ", arguments_.environ_script, environ_description)->type_name("FILE");
        add_settings();
        on(*this, [this] { return wrap_container(); });
    }

    /// What to do if `command` is given.
    void on(CLI::App& command, std::function<Result<int>()> action) {
        command.callback([this, action = std::move(action)] {
            call_.action = [this, action] {
                apply_environment(arguments_);
                return action();
            };
        });
    }

    CLI::App& add_new(const char* what, Kind kind) {
        auto* command = add_subcommand("new", "Create an installation");
        command->add_option("env_file", arguments_.file, what)->required()->type_name("FILE");
        add_prefix(*command);
        on(*command, [this, kind] { return create(kind); });
        return *command;
    }

    CLI::App& add_update() {
        auto* command = add_subcommand("update", "Change an installation");
        command->add_option("dir", arguments_.prefix, "The installation")->required()->type_name("DIR");
        on(*command, [this] { return run_update(arguments_, false, {}, call_.line); });
        return *command;
    }

    void add_advanced(const char* mode) {
        auto* command = add_subcommand("advanced", "Create an installation with settings from a YAML file");
        command->add_option("yaml", arguments_.settings, "The YAML file")->required()->type_name("FILE");
        on(*command, [this, mode] { return advanced(mode); });
    }

    void add_prefix(CLI::App& command) {
        command.add_option("--prefix", arguments_.prefix, "Directory of the installation")
            ->type_name("DIR")
            ->default_str("the working directory");
    }

    void add_settings() {
        add_option("-y,--yaml", arguments_.settings, "YAML file with further settings")->type_name("FILE");
    }

    void add_uv(CLI::App& command) {
        command.add_flag("--uv", arguments_.uv, "Install with uv, which becomes part of the installation");
    }

    void add_requirements(CLI::App& command) {
        command
            .add_option("-r,--requirement,--requirements-file", arguments_.requirements,
                        "Further packages for pip")
            ->type_name("FILE")
            ->allow_extra_args(false);
    }

    void add_common(CLI::App& command) {
        if (command.get_name() != std::string(names[3]))
            command.add_flag("--nocache", arguments_.no_cache, "Do not use the caches of pip and uv");
        add_hook_options(command, arguments_);
    }

    Result<int> create(Kind kind) {
        TRY(check_kind(kind, arguments_.file));
        TRY(prepare_prefix(arguments_));
        if (arguments_.slim) {
            // Like tykky: the Python of that version is the image's.
            const std::string version =
                arguments_.python_version.empty() ? "3.12" : arguments_.python_version;
            arguments_.base = "docker://python:" + version + "-slim";
            arguments_.python_version.clear();
        }
        arguments_.python = arguments_.python_version;
        arguments_.spec = arguments_.file;
        return run_new(arguments_, call_.line);
    }

    Result<int> wrap_install() {
        TykkySettings settings;
        if (!arguments_.settings.empty()) TRY(settings.read(arguments_.settings, arguments_));
        if (arguments_.wrapper_paths.empty())
            return fail_input("-w/--wrapper-paths is missing", "it selects the programs that get wrappers",
                              {}, "Give the directories that contain the programs, such as -w bin.");
        TRY(prepare_prefix(arguments_));
        arguments_.spec = arguments_.file;
        return run_wrap_install(arguments_, arguments_.mask, call_.line);
    }

    Result<int> wrap_container() {
        TykkySettings settings;
        if (!arguments_.settings.empty()) TRY(settings.read(arguments_.settings, arguments_));
        TRY(prepare_prefix(arguments_));
        arguments_.base = arguments_.file;
        return run_wrap_container(arguments_, call_.line);
    }

    Result<int> advanced(std::string_view mode) {
        TykkySettings settings;
        TRY(settings.read(arguments_.settings, arguments_));
        const auto wanted = settings.mode.empty() ? std::string(mode) : settings.mode;
        TRY(prepare_prefix(arguments_));
        if (wanted == "wrapcont") return run_wrap_container(arguments_, call_.line);
        if (wanted == "wrapdisk") {
            arguments_.spec = settings.wrap_source;
            return run_wrap_install(arguments_, settings.mask, call_.line);
        }
        arguments_.spec = wanted == "conda" ? settings.environment_file : settings.requirements_file;
        if (wanted == "conda" && !settings.requirements_file.empty())
            arguments_.requirements.push_back(settings.requirements_file);
        if (arguments_.spec.empty())
            return fail_input(wanted == "conda" ? "`env_file:` is missing"
                                                : "`requirements_file:` is missing",
                              {}, arguments_.settings, {});
        return run_new(arguments_, call_.line);
    }

    Call& call_;
    TykkyArguments arguments_;
};

} // namespace

bool is_name_of_tykky(std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

std::unique_ptr<CLI::App> make_tykky_tree(std::string_view name, Call& call) {
    return std::make_unique<TykkyTree>(name, call);
}

void write_as_tykky() {
    // tykky prints all messages to standard output, where scripts look for them.
    dup2(STDOUT_FILENO, STDERR_FILENO);
    log::use_tags();
}

void show_mistake_as_tykky(const std::string& command, const std::string& text) {
    std::fprintf(stdout, "usage: %s [-h] ...\n%s\n", command.c_str(), log::tagged("ERROR", text).c_str());
}

int report_as_tykky(Error error, const CLI::App& tree) {
    fit_hint(error.hint, tree);
    std::fprintf(stderr, "%s\n", log::tagged("ERROR", redacted(to_string(error))).c_str());
    return interrupted() ? exit_signal + interrupt_signal() : exit_failure;
}

} // namespace containerize::cli
