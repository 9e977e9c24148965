// Makes foreign text safe for a terminal: control characters could reprogram it, or hide what is shown.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// Replaces control characters by '?', except tabs and newlines.
std::string printable(std::string_view text);

/// Replaces these as well, for text that is to stay one line or one column.
std::string printable_line(std::string_view text);

} // namespace containerize
