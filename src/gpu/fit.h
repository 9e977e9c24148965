// Whether what an environment was built for is what a machine has.
#pragma once

#include "gpu/accelerator.h"
#include "gpu/host.h"

#include <optional>
#include <string>
#include <vector>

namespace containerize::gpu {

struct Fit {
    bool fits = true;
    std::string reason; ///< one sentence, which names what was compared
};

Fit compare(const AcceleratedPackage& package, const Host& host);

/// The nodes that an environment is built for, as far as the user says it.
struct Target {
    Accelerator accelerator = Accelerator::cuda;
    std::string toolkit; ///< the newest that they can run; empty if unknown
};

/// One line for each package that will not use the GPUs it is meant for: those of `target`, else those of
/// this machine. None where neither says that there are any: login nodes often have none.
std::vector<std::string> build_warnings(const std::vector<AcceleratedPackage>& packages,
                                        const std::optional<Target>& target, const Host& host);

} // namespace containerize::gpu
