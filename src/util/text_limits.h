// Limits for text files that users give: a malformed or hostile one must not fill the memory. A file at these
// limits takes less than 500 MB. Those of YAML files are in yaml_size.h and yaml_file.h.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace containerize {

inline constexpr std::uint64_t largest_text = std::uint64_t{16} << 20U; ///< bytes
inline constexpr std::size_t most_lines = 1'000'000;
/// A requirement with its hashes, which may go over many lines, has some kilobytes.
inline constexpr std::size_t longest_line = std::size_t{1} << 20U;
/// Of requirements or packages: each takes up to two kilobytes.
inline constexpr std::size_t most_packages = 50'000;

/// The error of a file beyond one of the limits.
inline std::unexpected<Error> too_large(std::string where, std::string limit, std::string hint = {}) {
    return fail_input("this file is too large", "the limit is " + std::move(limit), std::move(where),
                      std::move(hint));
}

} // namespace containerize
