// Reading the user's text files line by line, as pip does.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::spec {

/// Without the byte order mark; UTF-16 (what PowerShell writes) becomes UTF-8. Anything else than Unicode is
/// refused with its line, unless the file declares its encoding in a `coding:` comment, which pip then reads.
Result<std::string> decode(std::string_view content, const std::filesystem::path& file);

/// The lines without their ends: "\n", "\r\n" or "\r".
std::vector<std::string_view> split_lines(std::string_view text);

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// Words of a line of options: quotes and backslashes as in a shell, nothing expanded.
/// Nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text);

} // namespace containerize::spec
