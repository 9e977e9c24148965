// Small functions on text.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// ASCII letters in lower case, in any locale.
std::string lower(std::string_view text);

/// Without ASCII white space at both ends.
std::string_view trimmed(std::string_view text);

/// Replaces each `from`, which is not empty, in linear time.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Quotes a word for a shell, if that is necessary.
std::string shell_quoted(const std::string& word);

} // namespace containerize
