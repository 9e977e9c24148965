// A bind mount: a file or directory of the host that programs see at a path of their root.
#pragma once

#include "core/error.h"

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::manifest {

struct Bind {
    std::string source; ///< absolute, on the host
    std::string target; ///< absolute, inside
    bool read_only = false;
    bool required = false; ///< fail if the source is missing; otherwise the bind is skipped
    friend auto operator<=>(const Bind&, const Bind&) = default;
};

/// Parses "SRC[:DST[:OPTIONS]]", the form of Apptainer's binds. OPTIONS are "ro", "rw" and "required",
/// separated by ','. Anything else is an input error.
Result<Bind> parse_bind(std::string_view text);
/// Parses several binds separated by ','. A word that is an option belongs to the bind before it.
Result<std::vector<Bind>> parse_binds(std::string_view text);
std::string to_text(const Bind& bind);

/// Whether `name` can be the file name of a shared library, such as "libcxi.so.1", without directories.
bool is_library_name(std::string_view name);

} // namespace containerize::manifest
