// Packages name the prefix that they were built for; installed, their files name the real one.
#pragma once

#include "conda/package_info.h"
#include "util/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace containerize::conda {

/// Changes one file while it goes by: of the content, little more is kept than a placeholder's length.
class PrefixReplacement {
public:
    /// In texts, every occurrence; and a first line "#!..." that the kernel could not execute (longer than
    /// 127 bytes, or with a blank in the interpreter's path) becomes one that it can. In binaries, C strings
    /// keep their length: what the shorter prefix saves is filled up with NULs at the string's end. `path` is
    /// the file, for messages.
    PrefixReplacement(FileMode mode, std::string placeholder, std::string prefix, std::string path);

    /// The next part of the content; returns what can be said of the result by now. An error if a binary
    /// names a placeholder that is shorter than the prefix.
    Result<std::string> take(std::string_view content);
    /// The rest of the result.
    Result<std::string> finish();

private:
    Result<std::string> replaced(bool at_end);
    bool take_first_line(bool at_end, std::string& result);
    void replace_in_text(std::string& result);
    Status replace_in_binary(std::string& result);
    [[nodiscard]] std::string executable(std::string_view line) const;

    FileMode mode_;
    std::string placeholder_, prefix_, path_;
    std::string pending_;           ///< not replaced yet
    std::size_t at_ = 0;            ///< in pending_: what is before it is in the result
    bool first_line_ = true;        ///< of a text: it is still to come
    bool in_string_ = false;        ///< of a binary: in a C string that has been changed
    std::size_t missing_bytes_ = 0; ///< that string's
};

/// The first line of a script for `interpreter`, or several where one cannot say it, with a newline at the
/// end. `arguments` follow the interpreter; may be empty.
std::string shebang(std::string_view interpreter, std::string_view arguments = {});

} // namespace containerize::conda
