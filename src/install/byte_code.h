// Byte-code for what an environment has, so that no run compiles.
#pragma once

#include "install/recipe.h"
#include "util/error.h"

#include <set>
#include <string>
#include <vector>

namespace containerize::install {

/// Of `files`, relative to the prefix, the .py files that `python_name` ("python3.11") finds.
std::set<std::string> sources_among(const std::vector<std::string>& files, const std::string& python_name);

/// Compiles `sources`, relative to the prefix, with the environment's Python; those that are not of its
/// language are left alone.
Status compile_sources(const Workshop& shop, const std::set<std::string>& sources);

} // namespace containerize::install
