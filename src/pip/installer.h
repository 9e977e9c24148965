// Installs requirements with pip or uv.
#pragma once

#include "core/error.h"
#include "spec/requirements.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

enum class Installer {
    automatic,
    pip,
    uv,
    pip_tree ///< pip, which also installs: the wheels are not linked from package images
};

Result<Installer> parse_installer(std::string_view text);

/// The chosen installer, and why.
struct Choice {
    Installer installer = Installer::pip; ///< pip or uv
    std::filesystem::path uv = {};        ///< the program
    Environment for_uv = {};              ///< pip's configuration as variables for uv
    std::string reason = {};              ///< for the log
    std::string warning = {};             ///< what the requested installer will ignore; may be empty
};

/// `pip_configuration` is the output of `pip config list`, with PIP_ variables; uv reads none of it. Settings
/// that uv has, too, are translated. Automatic means pip if another setting, or an option in the
/// requirements, would be ignored. `environment` is the user's; its variables for uv take precedence.
Result<Choice> choose_installer(Installer wanted, const std::optional<std::filesystem::path>& uv,
                                std::string_view pip_configuration, const spec::Requirements& requirements,
                                const Environment& environment);

/// Receives lines of the installer's output, such as "Collecting numpy".
using Detail = std::function<void(std::string_view)>;

/// An environment, and how pip or uv is to work on it.
struct Target {
    std::filesystem::path python;
    std::filesystem::path pip;       ///< pip's code if the environment has no pip; otherwise empty
    std::string python_version = {}; ///< for uv, whose files may name another one: "3.11.2"
    bool offline = false;            ///< use only caches and local files
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

struct NamedVersion {
    std::string name, version = {};
};

struct InstallRequest {
    Target target;
    std::filesystem::path requirements;
    std::filesystem::path working_directory; ///< local paths in the file are relative to it
    std::filesystem::path constraints = {};  ///< a constraints file; may be empty
    std::filesystem::path report = {};       ///< for pip: the report file to write; may be empty
    bool dependencies = true;                ///< also install dependencies that are not listed
    bool verified = false;                   ///< require a checksum for each requirement
    bool dry_run = false;                    ///< only decide what to install, and report it
    bool reinstall = false;                  ///< also what is installed already, perhaps in another version
};

/// Installs without byte-code, which is compiled later. The error contains the installer's message.
Status install(const Choice& choice, const InstallRequest& request, const Detail& detail);

/// The package that this line of uv's output says is now installed, " + six==1.16.0".
std::optional<NamedVersion> installed_by_uv(std::string_view line);

/// The packages, without editable ones, where uv installs for this target if called in this directory, whose
/// files may name another place than the environment. A uv before 0.9.16 always lists the environment.
Result<std::vector<NamedVersion>> list_by_uv(const Choice& choice, const Target& target,
                                             const std::filesystem::path& directory);

Status uninstall(const Choice& choice, const Target& target, const std::vector<std::string>& names,
                 const Detail& detail);

/// Returns a pylock.toml (PEP 751) with the files that the index has for the versions in `pins`, a
/// requirements file that may also hold options. For uv, which does not report what it installed.
Result<std::string> lock_by_uv(const Choice& choice, const Target& target, const std::filesystem::path& pins);

/// Builds the wheel of one requirement, the only one in the file `requirement`, into the empty `directory`
/// with pip.
Result<std::filesystem::path> build_by_pip(const Target& target, const std::filesystem::path& requirement,
                                           const std::filesystem::path& directory, const Detail& detail);

/// The command line for running pip with the target's Python.
std::vector<std::string> pip_command(const Target& target);

} // namespace containerize::pip
