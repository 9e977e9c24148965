// Reads users' text files line by line, like pip.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize {

/// As the Unicode standard has it: no overlong forms, surrogates or code points above U+10FFFF.
bool is_utf8(std::string_view text);

/// Removes a byte order mark and converts UTF-16, as written by PowerShell, to UTF-8. Fails with an input
/// error on other encodings, unless the text declares one in a `coding:` comment, which pip honours.
Result<std::string> decode(std::string_view content, const std::filesystem::path& file);

/// What a reader of JSON, TOML or YAML makes of the backslashes in quoted strings: "https:\/\/host\u002F"
/// becomes "https://host/". A backslash at the end of a line joins it with the next one.
std::string without_escapes(std::string_view text);

/// Splits at "\n", "\r\n" and "\r", which are not part of the lines.
std::vector<std::string_view> split_lines(std::string_view text);

/// Splits a line of options into words, with quotes and backslashes as in a shell but without expansions.
/// Returns nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text);

} // namespace containerize
