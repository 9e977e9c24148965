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
    std::vector<MatchSpec> pins;
    ChannelPriority priority = ChannelPriority::flexible;
};

/// The packages to install, those that others depend on before them; chosen by mamba's rules, in its order of
/// requests. A request that cannot be met is an input error that says which parts conflict, and why.
Result<std::vector<PackageRecord>> solve(PackagePool& packages, SolveRequest request);

} // namespace containerize::conda
