// Installing requirements with pip or uv.
#pragma once

#include "spec/requirements.h"
#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

enum class Installer { automatic, pip, uv };

Result<Installer> parse_installer(std::string_view text);

/// What installs, and why.
struct Choice {
    Installer installer = Installer::pip;
    std::filesystem::path uv; ///< its program
    Environment for_uv;       ///< pip's configuration in uv's variables
    std::string reason;       ///< for the log
    std::string warning;      ///< what an installer that was asked for leaves out; may be empty
};

/// `pip_configuration` is what `pip config list` prints, which includes PIP_ variables: uv reads none of it.
/// Settings that uv has too are translated; where another one, or an option in the requirements, would be
/// lost, automatic means pip. `environment` is the user's: what it sets for uv itself stays.
Result<Choice> choose_installer(Installer wanted, const std::optional<std::filesystem::path>& uv,
                                std::string_view pip_configuration, const spec::Requirements& requirements,
                                const Environment& environment);

/// Something that pip or uv was told or did, for the line of progress: "Collecting numpy".
using Detail = std::function<void(std::string_view)>;

/// An environment, and how pip or uv shall work on it.
struct Target {
    std::filesystem::path python;
    std::filesystem::path pip; ///< pip's code, where the environment has none of its own; else empty
    bool offline = false;      ///< nothing but caches and what is on disk
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

struct InstallRequest {
    Target target;
    std::filesystem::path requirements;
    std::filesystem::path working_directory; ///< local paths in the file are relative to it, as pip has it
    std::filesystem::path constraints;       ///< a file of versions that must stay as they are; may be empty
    std::filesystem::path report;            ///< pip alone: where to write what was installed; may be empty
    bool dependencies = true;                ///< also what the requirements need and do not list
    bool verified = false;                   ///< each requirement must have a checksum
};

/// Without byte-code, which is made later and in parallel. The message has the installer's own reason.
Status install(const Choice& choice, const InstallRequest& request, const Detail& detail);

Status uninstall(const Choice& choice, const Target& target, const std::vector<std::string>& names,
                 const Detail& detail);

/// The arguments with which the target's Python runs pip.
std::vector<std::string> pip_command(const Target& target);

/// Lines of a requirements file with the checksums of all that the index has of each version in `pins`, which
/// are such lines, and options that say where to look. Of uv, which does not say what it installed.
Result<std::string> checksums_by_uv(const Choice& choice, const Target& target,
                                    const std::filesystem::path& pins);

} // namespace containerize::pip
