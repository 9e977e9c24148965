// Environment variables, and their names in texts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace containerize {

using Environment = std::map<std::string, std::string>;

/// The environment of this process.
Environment current_environment();

/// Its value; empty if it is not set.
std::string variable(const Environment& environment, const std::string& name);
/// The same in the environment of this process.
std::string variable(const char* name);

/// PATH, or where programs usually are if it is not set.
std::string search_path(const Environment& environment);

/// Letters, digits and underscores, not starting with a digit.
bool is_variable_name(std::string_view name);

struct VariableInText {
    std::string name;
    std::size_t size; ///< including '$' and braces
};
/// The $NAME or ${NAME} at the start of a text.
std::optional<VariableInText> variable_at(std::string_view text);

/// Replaces $NAME and ${NAME}. Unset variables stay as written.
std::string expand_variables(std::string_view text, const Environment& environment);

} // namespace containerize
