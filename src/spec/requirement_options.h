// The options that may stand in a requirements file.
#pragma once

#include <string>
#include <string_view>

namespace containerize::spec {

enum class OptionKind { include, editable, other };

struct Option {
    std::string_view name;
    char letter = 0; ///< of its short form; 0 if it has none
    bool takes_value = true;
    OptionKind kind = OptionKind::other;
};

/// The option that a word such as "--requirement=file", "-rfile" or "--requirem" means; null if pip knows
/// none.
const Option* find_option(std::string_view word);

/// What follows the option within its own word: "file" of "-rfile" and "--requirement=file"; else empty.
std::string_view attached_value(std::string_view word);

} // namespace containerize::spec
