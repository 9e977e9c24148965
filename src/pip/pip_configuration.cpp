#include "pip/pip_configuration.h"

#include "core/text.h"

#include <algorithm>

namespace containerize::pip {

namespace {

/// Parses `pip config list`: global.index-url='https://...' and :env:.find-links='...'.
std::vector<Setting> parse_configuration(std::string_view text) {
    std::vector<Setting> settings;
    for (const auto line : split(text, '\n')) {
        const auto equals = line.find('=');
        const auto dot = line.substr(0, equals).rfind('.');
        if (equals == std::string_view::npos || dot == std::string_view::npos) continue;
        auto value = line.substr(equals + 1);
        if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"')) {
            value.remove_prefix(1);
            value.remove_suffix(1);
        }
        settings.push_back({std::string(line.substr(0, dot)),
                            std::string(line.substr(dot + 1, equals - dot - 1)), std::string(value)});
    }
    return settings;
}

} // namespace

std::vector<Setting> settings_of_install(std::string_view configuration) {
    const auto settings = parse_configuration(configuration);
    std::vector<Setting> in_order;
    // Sections for other commands (pip download) do not apply.
    for (const std::string_view section : {"global", "install", ":env:"})
        std::ranges::copy_if(settings, std::back_inserter(in_order),
                             [&](const Setting& setting) { return setting.section == section; });
    return in_order;
}

std::string joined_list(std::string value, std::string_view separator) {
    // pip prints line breaks in a value as "\n".
    replace_all(value, "\\n", " ");
    return joined(words_in(value, " "), separator);
}

} // namespace containerize::pip
