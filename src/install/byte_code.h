// Byte-code for what an environment has, so that no run compiles.
#pragma once

#include "install/recipe.h"
#include "util/error.h"

#include <filesystem>
#include <set>
#include <string>

namespace containerize::install {

/// The .py files in `tree`, or a part of one, that `python_name` ("python3.11") finds; relative to `tree`.
std::set<std::string> sources_below(const std::filesystem::path& tree, const std::string& python_name);

/// Compiles `sources`, relative to the prefix, with the environment's Python; those that are not of its
/// language are left alone.
Status compile_sources(const Workshop& shop, const std::set<std::string>& sources);

} // namespace containerize::install
