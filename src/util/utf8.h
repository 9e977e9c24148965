// Whether text is UTF-8, which YAML, JSON and pip expect.
#pragma once

#include <string_view>

namespace containerize {

/// As the Unicode standard has it: no overlong forms, surrogates or code points above U+10FFFF.
bool is_utf8(std::string_view text);

} // namespace containerize
