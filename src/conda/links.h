// Where symbolic links in a prefix lead.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::conda {

/// The target of the link at a path below the prefix; nothing if there is no link.
using LinkAt = std::function<std::optional<std::string>(const std::string& path)>;

/// Where `target` leads from `directory`, which is below the prefix (or it, empty) and not behind a link: a
/// path below the prefix, behind no link but in a loop of them; nothing if it leads out on the way. The
/// kernel would go the same way, where `link_at` knows all links. `prefix` is absolute.
std::optional<std::string> follow(std::string_view directory, std::string_view target,
                                  std::string_view prefix, const LinkAt& link_at);

} // namespace containerize::conda
