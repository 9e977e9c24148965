// Small things done to text.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// ASCII letters in lower case, whatever the locale.
std::string lower(std::string_view text);

/// Each `from`, which is not empty. Takes time in proportion to the text.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// What others wrote may hold sequences that reprogram a terminal: control characters, but for tabs and
/// newlines, become '?'.
std::string printable(std::string_view text);

/// As a user would have to type it.
std::string shell_quoted(const std::string& word);

} // namespace containerize
