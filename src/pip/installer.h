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

struct InstallRequest {
    std::filesystem::path python; ///< of the environment
    std::filesystem::path requirements;
    std::filesystem::path working_directory; ///< local paths in the file are relative to it, as pip has it
    std::filesystem::path constraints;       ///< a file of versions that must stay as they are; may be empty
    std::filesystem::path report;            ///< pip alone: where to write what was installed; may be empty
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

/// Without byte-code, which is made later and in parallel. The message has the installer's own reason.
Status install(const Choice& choice, const InstallRequest& request, const Detail& detail);

} // namespace containerize::pip
