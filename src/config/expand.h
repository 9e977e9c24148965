// Expands $NAME and ${NAME} in a configuration.
#pragma once

#include "core/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::config {

/// Returns nothing if the variable is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Expands variables, and "~" at the start to $HOME. Supports only $NAME and ${NAME}. Fails if a variable is
/// not set, since the rest of a path would name another place.
Result<std::string> expand(std::string_view text, const Lookup& lookup);

} // namespace containerize::config
