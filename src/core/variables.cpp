#include "core/variables.h"

#include <algorithm>
#include <cctype>

#include <unistd.h>

namespace containerize {

namespace {

bool is_name_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

} // namespace

Environment current_environment() {
    Environment environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return environment;
}

std::string variable(const Environment& environment, Variable which) {
    return named_variable(environment, which.name());
}

std::string named_variable(const Environment& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
}

std::string named_variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? "" : value;
}

std::string variable(Variable which) {
    return named_variable(which.name());
}

std::string search_path(const Environment& environment) {
    return environment.contains("PATH") ? variable(environment, "PATH") : "/usr/bin:/bin";
}

bool is_variable_name(std::string_view name) {
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::ranges::all_of(name, is_name_character);
}

std::optional<VariableInText> variable_at(std::string_view text) {
    if (!text.starts_with('$')) return std::nullopt;
    const bool braced = text.starts_with("${");
    text.remove_prefix(braced ? 2 : 1);
    const auto name = text.substr(
        0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_character) - text.begin()));
    if (!is_variable_name(name) || (braced && !text.substr(name.size()).starts_with('}')))
        return std::nullopt;
    return VariableInText{.name = std::string(name), .size = name.size() + (braced ? 3 : 1)};
}

std::string expand_variables(std::string_view text, const Environment& environment) {
    std::string result;
    while (!text.empty()) {
        const auto named = variable_at(text);
        const auto found = named ? environment.find(named->name) : environment.end();
        result += found == environment.end() ? text.substr(0, 1) : found->second;
        text.remove_prefix(found == environment.end() ? 1 : named->size);
    }
    return result;
}

} // namespace containerize
