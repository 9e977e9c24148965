// How much a text of YAML can become, told before anything is made of it.
#pragma once

#include <cstddef>
#include <string_view>

namespace containerize {

/// No document of YAML in this text has more nodes, and a parser keeps no more tokens; files that real tools
/// write have about as many nodes. yaml-cpp takes about 500 bytes for each.
std::size_t most_yaml_nodes(std::string_view text);

/// For files that a person writes: 25 MB at most.
inline constexpr std::size_t most_nodes_by_hand = 50'000;

} // namespace containerize
