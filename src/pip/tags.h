// Which wheels an interpreter can use, and which of them it prefers.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::pip {

/// What decides the tags of an interpreter on Linux.
struct InterpreterFacts {
    std::string implementation; ///< "cpython"
    int minor = 0;              ///< of Python 3
    bool free_threaded = false, debug = false;
    std::string machine;                   ///< "x86_64"
    std::string libc;                      ///< "glibc" or "musl"
    std::pair<int, int> libc_version = {}; ///< {2, 36}
};

/// `python` is the command of the interpreter, without arguments.
Result<InterpreterFacts> ask_interpreter(Command python);

/// The tags of wheels that CPython can use, such as "cp311-cp311-linux_x86_64". The best is first for uv: pip
/// has the same, but its newer versions prefer "linux_" to "manylinux_".
std::vector<std::string> tags_of(const InterpreterFacts& facts);

/// How good a wheel is: greater is better.
struct WheelRank {
    std::ptrdiff_t tag = 0; ///< less the place of its best tag
    std::pair<std::uint64_t, std::string> build = {};

    auto operator<=>(const WheelRank&) const = default;
};

class TagOrder {
public:
    explicit TagOrder(const std::vector<std::string>& tags);

    /// nullopt if the interpreter cannot use a wheel with this file name, or if it is none.
    [[nodiscard]] std::optional<WheelRank> rank(std::string_view file_name) const;

private:
    std::map<std::string, std::ptrdiff_t, std::less<>> places_;
};

} // namespace containerize::pip
