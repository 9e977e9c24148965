#include "config/variables.h"

#include <algorithm>
#include <cctype>

namespace containerize::config {

namespace {

bool is_name_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct Variable {
    std::string name;
    std::size_t length; ///< including '$' and braces
};

/// The variable at the start of `text`, which is a '$'.
std::optional<Variable> variable_at(std::string_view text) {
    const bool braced = text.starts_with("${");
    const auto name = text.substr(braced ? 2 : 1);
    const auto end =
        static_cast<std::size_t>(std::ranges::find_if_not(name, is_name_character) - name.begin());
    if (!is_variable_name(name.substr(0, end))) return std::nullopt;
    if (!braced) return Variable{std::string(name.substr(0, end)), end + 1};
    if (end == name.size() || name[end] != '}') return std::nullopt;
    return Variable{std::string(name.substr(0, end)), end + 3};
}

} // namespace

Result<std::string> expand(std::string_view text, const Lookup& lookup) {
    std::string home;
    if (text == "~" || text.starts_with("~/")) {
        home = "${HOME}" + std::string(text.substr(1));
        text = home;
    }
    std::string result;
    while (!text.empty()) {
        if (!text.starts_with('$')) {
            const auto end = std::min(text.find('$'), text.size());
            result += text.substr(0, end);
            text.remove_prefix(end);
            continue;
        }
        const auto variable = variable_at(text);
        if (!variable)
            return fail_input("invalid variable: '" + std::string(text) + "'", {}, {},
                              "Write variables as $NAME or ${NAME}.");
        const auto value = lookup(variable->name);
        if (!value)
            return fail_input("the variable " + variable->name + " is not set", {}, {},
                              "Set it, or choose another directory.");
        result += *value;
        text.remove_prefix(variable->length);
    }
    return result;
}

bool is_variable_name(std::string_view name) {
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::ranges::all_of(name, is_name_character);
}

} // namespace containerize::config
