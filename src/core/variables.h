// Environment variables, and their names in texts.
#pragma once

#include "core/variable_table.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace containerize {

using Environment = std::map<std::string, std::string>;

/// The environment of this process.
Environment current_environment();

/// Its value; empty if it is not set.
std::string variable(const Environment& environment, Variable which);
/// The same in the environment of this process.
std::string variable(Variable which);
/// The same for a name that a user or another program chose.
std::string named_variable(const Environment& environment, const std::string& name);
std::string named_variable(const std::string& name);
/// Null if it is not set.
inline const char* value_of(Variable which) {
    return std::getenv(which.name());
}

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
