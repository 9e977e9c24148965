// Replaces the prefix that a package was built for by the real one.
#pragma once

#include "conda/package_info.h"
#include "core/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace containerize::conda {

/// Processes one file as a stream and buffers little more than the placeholder's length.
class PrefixReplacement {
public:
    /// In text files, replaces every occurrence, and rewrites a line "#!..." that the kernel could not
    /// execute (longer than 127 bytes, or with a blank in the interpreter's path). In binaries, keeps the
    /// length of C strings by adding NULs at the end. `path` is the file's path for messages.
    PrefixReplacement(FileMode mode, std::string placeholder, std::string prefix, std::string path);

    /// Takes the next part of the content and returns the output that is final by now. Fails if a binary
    /// contains the placeholder and the prefix is longer than that.
    Result<std::string> take(std::string_view content);
    /// Returns the rest of the output.
    Result<std::string> finish();

private:
    Result<std::string> replaced(bool at_end);
    bool take_first_line(bool at_end, std::string& result);
    void replace_in_text(std::string& result);
    Status replace_in_binary(std::string& result);
    [[nodiscard]] std::string executable(std::string_view line) const;

    FileMode mode_;
    std::string placeholder_, prefix_, path_;
    std::string pending_;           ///< input not processed yet
    std::size_t at_ = 0;            ///< in pending_: everything before it is in the output
    bool first_line_ = true;        ///< text: the first line is still to come
    bool in_string_ = false;        ///< binary: inside a C string that was changed
    std::size_t missing_bytes_ = 0; ///< binary: NULs to add to that string
};

/// Returns the first line of a script for `interpreter`, with a newline, or several lines if one cannot
/// express it. `arguments` follow the interpreter; may be empty.
std::string shebang(std::string_view interpreter, std::string_view arguments = {});

} // namespace containerize::conda
