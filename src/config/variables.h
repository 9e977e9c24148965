// $NAME and ${NAME} in a configuration.
#pragma once

#include "util/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::config {

/// Nothing for a variable that is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// With the values of variables, and of HOME for "~" at the begin. A variable that is not set is an error:
/// what is left of the path without it would be another place. There are no forms but $NAME and ${NAME}.
Result<std::string> expand(std::string_view text, const Lookup& lookup);

/// Letters, digits and underscores, no digit first.
bool is_variable_name(std::string_view name);

} // namespace containerize::config
