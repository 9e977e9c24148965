// The options that are allowed in a requirements file.
#pragma once

#include <string_view>

namespace containerize::spec {

enum class OptionKind { include, editable, other };

struct Option {
    std::string_view name;
    char letter = 0; ///< its short form; 0 if there is none
    bool takes_value = true;
    OptionKind kind = OptionKind::other;
};

/// Returns the option for a word such as "--requirement=file", "-rfile" or "--requirem"; null if pip has no
/// such option.
const Option* find_option(std::string_view word);

/// Whether a line of options has the option of this name: "--trusted-host".
bool has_option(std::string_view line, std::string_view name);

/// Returns the value within the word: "file" for "-rfile" and "--requirement=file"; empty if there is none.
std::string_view attached_value(std::string_view word);

} // namespace containerize::spec
