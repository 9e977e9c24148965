// Selects packages that satisfy a request, with all their dependencies.
#pragma once

#include "conda/conda_config.h"
#include "conda/match_spec.h"
#include "conda/package_pool.h"
#include "conda/package_record.h"
#include "core/error.h"

#include <string>
#include <vector>

namespace containerize::conda {

struct Wanted {
    MatchSpec spec;
    std::vector<std::string> channels = {}; ///< URLs of the spec's channel or multichannel; empty: any
    std::string where = {};                 ///< "file:line", for messages
};

struct SolveRequest {
    std::vector<Wanted> wanted;
    /// Specs that restrict packages without requesting them.
    std::vector<Wanted> pins;
    bool pip_with_python = true; ///< a request for Python implies pip
    ChannelPriority priority = ChannelPriority::flexible;
};

/// The names for which packages must be loaded.
std::vector<std::string> names_in(const SolveRequest& request);

struct Solution {
    std::vector<PackageRecord> install; ///< dependencies come first
    /// For an existing environment: names of packages that are removed or replaced.
    std::vector<std::string> remove;
};

/// Solves by mamba's rules. Keeps installed packages as far as the request allows. If the request cannot be
/// satisfied, fails with an input error that explains the conflict.
Result<Solution> solve(PackagePool& packages, SolveRequest request);

} // namespace containerize::conda
