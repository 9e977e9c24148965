// Compiles byte-code ahead of time, so that no program run has to.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace containerize::environments {

/// The .py files below lib/`python_name` ("python3.11") among `files`, all relative to the prefix.
std::set<std::string> sources_among(const std::vector<std::string>& files, const std::string& python_name);

/// All .py files below the given directories of a tree, relative to its top.
std::set<std::string> sources_below(const std::filesystem::path& tree,
                                    const std::vector<std::string>& directories);

/// Compiles `sources` (relative to the prefix) with the environment's Python, unless they have
/// byte-code that can be kept. Skips files that this Python version cannot compile.
Status compile_sources(const BuildContext& context, const std::set<std::string>& sources);

} // namespace containerize::environments
