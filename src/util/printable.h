// Text of others, made safe for a terminal: control characters could reprogram it, or hide what is shown.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// With a '?' for each control character but tabs and the ends of lines.
std::string printable(std::string_view text);

/// With one for those, too: what is to be one line or one column.
std::string printable_line(std::string_view text);

} // namespace containerize
