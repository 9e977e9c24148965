// Choosing packages: what was asked for, and all that it needs.
#pragma once

#include "conda/config.h"
#include "conda/match_spec.h"
#include "conda/package_pool.h"
#include "conda/package_record.h"
#include "util/error.h"

#include <string>
#include <vector>

namespace containerize::conda {

struct Wanted {
    MatchSpec spec;
    std::vector<std::string> channels; ///< URLs of what the spec names ("defaults" is several); empty for any
    std::string where;                 ///< "file:line", for messages
};

struct SolveRequest {
    std::vector<Wanted> wanted;
    /// Apply to packages that are installed anyway, and ask for none.
    std::vector<Wanted> pins;
    bool pip_with_python = true; ///< with Python comes pip
    ChannelPriority priority = ChannelPriority::flexible;
};

/// What the packages have to be loaded for.
std::vector<std::string> names_in(const SolveRequest& request);

struct Solution {
    std::vector<PackageRecord> install; ///< those that others depend on before them
    /// Of an environment that is there already: names of what goes, or is replaced.
    std::vector<std::string> remove;
};

/// Chosen by mamba's rules, in its order of requests. What is installed already stays as it is, as far as
/// the request lets it. A request that cannot be met is an input error that says which parts conflict, and
/// why.
Result<Solution> solve(PackagePool& packages, SolveRequest request);

} // namespace containerize::conda
