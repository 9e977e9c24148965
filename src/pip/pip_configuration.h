// Reads pip's configuration: its files and PIP_ variables.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

struct Setting {
    std::string section; ///< "global", "install", ":env:"
    std::string name;
    std::string value;
};

/// Returns the settings that apply to `pip install`, in order of increasing precedence. `configuration` is
/// the output of `pip config list`.
std::vector<Setting> settings_of_install(std::string_view configuration);

/// Whether settings make pip install elsewhere than into the environment of its Python, or nothing.
bool misdirect(const std::vector<Setting>& settings);
/// Gives pip all other settings as variables, and no configuration file: pip has no value for "no `target`".
void pass_without_misdirecting(const std::vector<Setting>& settings, Environment& environment);

struct Configuration {
    std::string settings;    ///< the output of `pip config list`, without settings that misdirect
    Environment environment; ///< makes pip use them
};

/// Asks pip for its settings. `pip` is a command without arguments.
Result<Configuration> configure(Command pip);

/// The files in which pip and uv look for their settings; most do not exist.
std::vector<std::filesystem::path> configuration_files(const Environment& environment);

/// The value of a list setting with `separator` between its items.
std::string joined_list(std::string value, std::string_view separator);

} // namespace containerize::pip
