// A file or directory of the host that programs see at a path of their root.
#pragma once

#include "util/error.h"

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::runtime {

struct Bind {
    std::string source; ///< absolute, on the host
    std::string target; ///< absolute, inside
    bool read_only = false;
    bool required = false; ///< a source that is missing is an error; else it is left out
    friend auto operator<=>(const Bind&, const Bind&) = default;
};

/// "SRC[:DST[:OPTIONS]]" with options "ro", "rw" and "required", separated by ','; the form of Apptainer's
/// binds.
Result<Bind> parse_bind(std::string_view text);
/// Several, separated by ','; where a ',' separates options, those are taken first.
Result<std::vector<Bind>> parse_binds(std::string_view text);
std::string to_text(const Bind& bind);

/// Whether it can be the name of a shared library of the host's: "libcxi.so.1", without directories.
bool is_library_name(std::string_view name);

} // namespace containerize::runtime
