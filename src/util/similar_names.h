// Names that somebody may have meant.
#pragma once

#include <string>
#include <vector>

namespace containerize {

/// At most five of `names` that are similar to `name`, best first.
std::vector<std::string> similar_names(const std::vector<std::string>& names, const std::string& name);

} // namespace containerize
