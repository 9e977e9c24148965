// Packages name the prefix that they were built for; installed, their files name the real one.
#pragma once

#include "util/error.h"

#include <string>
#include <string_view>

namespace containerize::conda {

/// Every occurrence; and a first line "#!..." that the kernel could not execute (longer than 127 bytes, or
/// with a blank in the interpreter's path) becomes one that it can.
std::string replace_in_text(std::string_view content, std::string_view placeholder, std::string_view prefix);

/// In C strings, which keep their length: what the shorter prefix saves is filled up with NULs at the
/// string's end. An error if `prefix` is longer than `placeholder`; `path` is the file, for the message.
Result<std::string> replace_in_binary(std::string content, std::string_view placeholder,
                                      std::string_view prefix, const std::string& path);

/// The first line of a script for `interpreter`, or several where one cannot say it, with a newline at the
/// end. `arguments` follow the interpreter; may be empty.
std::string shebang(std::string_view interpreter, std::string_view arguments = {});

} // namespace containerize::conda
