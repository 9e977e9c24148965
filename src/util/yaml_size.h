// An upper bound for the size of a YAML document, before anything is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace containerize {

/// An upper bound for the nodes of any YAML document in this text, and for the tokens that a parser keeps.
/// Files of real tools come close to it. yaml-cpp takes about 500 bytes for each.
std::size_t most_yaml_nodes(std::string_view text);

/// For files written by hand; takes 25 MB at most.
inline constexpr std::size_t most_nodes_by_hand = 50'000;

} // namespace containerize
