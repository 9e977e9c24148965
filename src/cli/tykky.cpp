#include "cli/tykky.h"

#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/tykky_settings.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "manifest/manifest.h"
#include "spec/spec.h"
#include "util/log.h"
#include "util/redact.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

constexpr std::array<std::string_view, 4> names = {"conda-containerize", "pip-containerize", "wrap-container",
                                                   "wrap-install"};

/// Typed options, including those that our own commands do not have.
struct TykkyArguments : BuildArguments {
    std::string file;     ///< environment, requirements, software or container
    std::string settings; ///< a YAML file
    std::string python_version;
    bool no_cache = false, slim = false, mask = false;
};

/// tykky's levels: 0 errors, 1 warnings, 2 progress, 3 everything.
void apply_log_level(BuildArguments& arguments) {
    const char* text = std::getenv("CW_LOG_LEVEL");
    if (text == nullptr) return;
    const int level = std::atoi(text);
    arguments.quiet = level < 2;
    arguments.verbose = level > 2;
}

/// Applies tykky's environment variables. conda's configuration is ignored unless CW_ENABLE_CONDARC is set.
void apply_environment(TykkyArguments& arguments) {
    apply_log_level(arguments);
    if (const char* directory = std::getenv("CW_BUILD_TMPDIR")) arguments.staging_parent = directory;
    arguments.no_config = std::getenv("CW_ENABLE_CONDARC") == nullptr;
    arguments.keep_files = std::getenv("CW_DEBUG_KEEP_FILES") != nullptr;
    if (!arguments.no_cache) return;
    setenv("PIP_NO_CACHE_DIR", "1", 1);
    setenv("UV_NO_CACHE", "1", 1);
}

int report(const Error& error) {
    std::fprintf(stderr, "%s\n", log::tagged("ERROR", redacted(to_string(error))).c_str());
    if (interrupted()) return 128 + interrupt_signal();
    return 1;
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
    auto found = spec::recognise_supported(file);
    if (!found) return fail(std::move(found.error()));
    const bool of_pip = std::holds_alternative<spec::RequirementsReader>(spec::format_of(*found).reader);
    if (of_pip == (kind == Kind::pip)) return {};
    return kind == Kind::conda
               ? fail_input("conda-containerize does not accept " + spec::describe(*found), {}, file,
                            "Use pip-containerize, or give an environment file and pass this file with -r.")
               : fail_input("pip-containerize does not accept " + spec::describe(*found), {}, file,
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
    CLI::App ours;
    Action unused;
    for (const auto add : {add_new, add_wrap_install, add_wrap_container})
        add(ours, unused, {});
    add_update(ours, unused, {}, {});
    if (!names_option_lacking(hint, command, *ours.get_subcommand(name))) return;
    hint += "\n`containerize " + name + "` has that option, and otherwise does the same as this command.";
}

class Commands {
public:
    Commands(CLI::App& app, std::string command_line) : app_(app), command_line_(std::move(command_line)) {}

    void add_for_conda() {
        auto& create = add_new("conda env file", Kind::conda);
        create.add_flag("--mamba", arguments_->mamba, "accepted: there is one solver");
        add_uv(create);
        add_requirements(create);
        add_common(create);
        auto& update = add_update();
        add_requirements(update);
        add_common(update);
        add_advanced("conda");
    }

    void add_for_pip() {
        auto& create = add_new("requirements file for pip", Kind::pip);
        add_uv(create);
        create.add_flag("--slim", arguments_->slim, "Use minimal base python container");
        create.add_option("--pyver", arguments_->python_version, "Python version to use");
        create.add_flag("--system-site-packages", arguments_->system_site_packages,
                        "Let programs see the interpreter's own packages, and the user's");
        add_common(create);
        auto& update = add_update();
        add_requirements(update);
        add_common(update);
        add_advanced("venv");
    }

    void add_for_install() {
        app_.add_option("dir", arguments_->file, "Software to wrap")->required();
        app_.add_option("--prefix", arguments_->prefix, "Installation location");
        app_.add_flag("--mask", arguments_->mask, "Mask installation on disk");
        app_.add_option("-y,--yaml", arguments_->settings, "Tool yaml conf file");
        add_common(app_);
        app_.callback([this] { action_ = [this] { return wrap_install(); }; });
    }

    void add_for_container() {
        app_.add_option("container", arguments_->file, "Container to wrap")->required();
        app_.add_option("--prefix", arguments_->prefix, "Installation location");
        app_.add_option("-w,--wrapper-paths", arguments_->wrapper_paths, "Comma separated list of paths")
            ->delimiter(',')
            ->allow_extra_args(false);
        app_.add_option("--environ", arguments_->environ_script, "Script to run before each program launch");
        app_.add_option("-y,--yaml", arguments_->settings, "Tool yaml conf file");
        app_.callback([this] { action_ = [this] { return wrap_container(); }; });
    }

    Result<int> run() {
        if (!action_) return 0;
        apply_environment(*arguments_);
        return action_();
    }

private:
    CLI::App& add_new(const char* what, Kind kind) {
        auto* command = app_.add_subcommand("new", "Create new installation");
        command->add_option("env_file", arguments_->file, what)->required();
        command->add_option("--prefix", arguments_->prefix, "Installation location");
        command->callback([this, kind] { action_ = [this, kind] { return create(kind); }; });
        return *command;
    }

    CLI::App& add_update() {
        auto* command = app_.add_subcommand("update", "update an existing installation");
        command->add_option("dir", arguments_->prefix, "Installation to update")->required();
        command->callback([this] { action_ = [this] { return update(); }; });
        return *command;
    }

    void add_advanced(const char* mode) {
        auto* command = app_.add_subcommand("advanced", "settings from a yaml file");
        command->add_option("yaml", arguments_->settings, "yaml file with tool config")->required();
        command->callback([this, mode] { action_ = [this, mode] { return advanced(mode); }; });
    }

    void add_uv(CLI::App& command) {
        command.add_flag("--uv", arguments_->uv, "Use uv, which becomes part of the installation");
    }

    void add_requirements(CLI::App& command) {
        command
            .add_option("-r,--requirement,--requirements-file", arguments_->requirements,
                        "requirements file for pip")
            ->allow_extra_args(false);
    }

    void add_common(CLI::App& command) {
        if (command.get_name() != std::string(names[3]))
            command.add_flag("--nocache", arguments_->no_cache, "Do not use pip/uv cache");
        add_hook_options(command, *arguments_);
    }

    Result<int> create(Kind kind) {
        if (auto fits = check_kind(kind, arguments_->file); !fits) return fail(std::move(fits.error()));
        if (auto prepared = prepare_prefix(*arguments_); !prepared) return fail(std::move(prepared.error()));
        if (arguments_->slim) {
            // Like tykky: the Python of that version is the image's.
            const std::string version =
                arguments_->python_version.empty() ? "3.12" : arguments_->python_version;
            arguments_->base = "docker://python:" + version + "-slim";
            arguments_->python_version.clear();
        }
        arguments_->python = arguments_->python_version;
        arguments_->spec = arguments_->file;
        return run_new(*arguments_, command_line_);
    }

    Result<int> update() { return run_update(*arguments_, false, {}, command_line_); }

    Result<int> wrap_install() {
        TykkySettings settings;
        if (!arguments_->settings.empty())
            if (auto read = settings.read(arguments_->settings, *arguments_); !read)
                return fail(std::move(read.error()));
        if (arguments_->wrapper_paths.empty())
            return fail_input("-w/--wrapper-paths is missing", "it selects the programs that get wrappers",
                              {}, "Give the directories that contain the programs, such as -w bin.");
        if (auto prepared = prepare_prefix(*arguments_); !prepared) return fail(std::move(prepared.error()));
        arguments_->spec = arguments_->file;
        return run_wrap_install(*arguments_, arguments_->mask, command_line_);
    }

    Result<int> wrap_container() {
        TykkySettings settings;
        if (!arguments_->settings.empty())
            if (auto read = settings.read(arguments_->settings, *arguments_); !read)
                return fail(std::move(read.error()));
        if (auto prepared = prepare_prefix(*arguments_); !prepared) return fail(std::move(prepared.error()));
        arguments_->base = arguments_->file;
        return run_wrap_container(*arguments_, command_line_);
    }

    Result<int> advanced(std::string_view mode) {
        TykkySettings settings;
        if (auto read = settings.read(arguments_->settings, *arguments_); !read)
            return fail(std::move(read.error()));
        const auto wanted = settings.mode().empty() ? std::string(mode) : settings.mode();
        if (auto prepared = prepare_prefix(*arguments_); !prepared) return fail(std::move(prepared.error()));
        if (wanted == "wrapcont") return run_wrap_container(*arguments_, command_line_);
        if (wanted == "wrapdisk") {
            arguments_->spec = settings.wrap_source();
            return run_wrap_install(*arguments_, settings.mask(), command_line_);
        }
        arguments_->spec = wanted == "conda" ? settings.environment_file() : settings.requirements_file();
        if (wanted == "conda" && !settings.requirements_file().empty())
            arguments_->requirements.push_back(settings.requirements_file());
        if (arguments_->spec.empty())
            return fail_input(wanted == "conda" ? "`env_file:` is missing"
                                                : "`requirements_file:` is missing",
                              {}, arguments_->settings, {});
        return run_new(*arguments_, command_line_);
    }

    CLI::App& app_;
    std::string command_line_;
    std::shared_ptr<TykkyArguments> arguments_ = std::make_shared<TykkyArguments>();
    Action action_;
};

const char* description_of(std::string_view name) {
    if (name == names[0]) return "Make or change an installation of conda packages";
    if (name == names[1]) return "Make or change an installation of packages of pip";
    if (name == names[2]) return "Make wrappers for the programs of a container";
    return "Put software that is installed in a directory into an image, with wrappers for its programs";
}

std::string whole_line(std::string_view name, int argc, char** argv) {
    std::vector<std::string> words = {std::string(name)};
    words.insert(words.end(), argv + 1, argv + argc);
    return redacted_command(words);
}

} // namespace

bool is_name_of_tykky(std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

int run_as_tykky(std::string_view name, int argc, char** argv) {
    // tykky prints all messages to standard output, where scripts look for them.
    dup2(STDOUT_FILENO, STDERR_FILENO);
    log::use_tags();
    CLI::App app(description_of(name), std::string(name));
    app.set_help_flag("-h,--help", "show this help message and exit");
    app.get_formatter()->label("Usage", "usage");
    app.get_formatter()->column_width(34);
    app.require_subcommand(0, 1);
    Commands commands(app, whole_line(name, argc, argv));
    if (name == names[0]) commands.add_for_conda();
    if (name == names[1]) commands.add_for_pip();
    if (name == names[2]) commands.add_for_container();
    if (name == names[3]) commands.add_for_install();
    if (argc == 1) {
        std::fputs(app.help().c_str(), stdout);
        return 0;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
        if (problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(problem);
        const auto chosen = app.get_subcommands();
        const auto command = app.get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name());
        std::fprintf(stdout, "usage: %s [-h] ...\n%s\n", command.c_str(),
                     log::tagged("ERROR", redacted(problem.what())).c_str());
        return 2;
    }
    hide_secrets_of_process(argc, argv);
    auto done = commands.run();
    if (done) return *done;
    fit_hint(done.error().hint, app);
    return report(done.error());
}

} // namespace containerize::cli
