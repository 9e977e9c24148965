// Compares what an environment was built for with the GPUs of a machine.
#pragma once

#include "gpu/accelerator.h"
#include "gpu/host.h"

#include <optional>
#include <string>
#include <vector>

namespace containerize::gpu {

struct Fit {
    bool fits = true;
    std::string reason; ///< a sentence that names what was compared
};

Fit compare(const AcceleratedPackage& package, const Host& host);
/// For vendors (Vendor::fit): compares what the package has code for with the devices' targets, as far as
/// both are known.
Fit fit_by_targets(const AcceleratedPackage& package, const Host& host);

/// The nodes that an environment is built for, as the user describes them.
struct Target {
    const Vendor& vendor;
    std::string toolkit; ///< the newest that they support; empty if unknown
};

/// Returns warnings about packages that lack libraries, or cannot use the intended GPUs: those of `target`,
/// otherwise this machine's, if it has any (many login nodes do not).
std::vector<std::string> build_warnings(const std::vector<AcceleratedPackage>& packages,
                                        const std::optional<Target>& target, const Host& host);

} // namespace containerize::gpu
