// Resolves symlinks within a prefix.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::conda {

/// Returns the target of the symlink at a path below the prefix; nothing if there is none.
using LinkAt = std::function<std::optional<std::string>(const std::string& path)>;

/// Resolves `target` from `directory`, a path without symlinks, relative to the absolute `prefix` or empty.
/// Returns a path of the same kind (in a loop of symlinks, not all are resolved), or nothing if the way leads
/// out of the prefix. Matches the kernel's result if `link_at` knows all symlinks.
std::optional<std::string> follow(std::string_view directory, std::string_view target,
                                  std::string_view prefix, const LinkAt& link_at);

} // namespace containerize::conda
