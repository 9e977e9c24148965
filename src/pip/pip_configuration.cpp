#include "pip/pip_configuration.h"

#include <algorithm>

namespace containerize::pip {

namespace {

/// Parses `pip config list`: global.index-url='https://...' and :env:.find-links='...'.
std::vector<Setting> parse_configuration(std::string_view text) {
    std::vector<Setting> settings;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
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
    for (std::size_t at = 0; (at = value.find("\\n", at)) != std::string::npos;)
        value.replace(at, 2, " ");
    std::string list;
    for (std::size_t start = 0; (start = value.find_first_not_of(' ', start)) != std::string::npos;) {
        const auto end = std::min(value.find(' ', start), value.size());
        if (!list.empty()) list += separator;
        list += value.substr(start, end - start);
        start = end;
    }
    return list;
}

} // namespace containerize::pip
