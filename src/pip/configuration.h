// What pip is told by its configuration files and by PIP_ variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

struct Setting {
    std::string section; ///< "global", "install", ":env:"
    std::string name;
    std::string value;
};

/// Those that count for `pip install`, of two of a name the one that wins later. `configuration` is what
/// `pip config list` prints.
std::vector<Setting> settings_of_install(std::string_view configuration);

/// The value of a setting that is a list, with these separators between its words.
std::string joined_list(std::string value, std::string_view separator);

} // namespace containerize::pip
