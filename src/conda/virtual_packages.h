// Detects virtual packages, which describe the machine: "__glibc", "__linux", "__cuda" and so on.
#pragma once

#include "conda/package_pool.h"
#include "core/variables.h"
#include "image/tree_view.h"

#include <string>
#include <vector>

namespace containerize::conda {

/// What packages are chosen for.
struct Target {
    std::string cuda =
        {}; ///< the CUDA version of the nodes that will run the programs; empty: this machine's
    /// The root filesystem whose C library the programs use; null: this machine's.
    const image::TreeView* root = nullptr;
};

/// Returns conda's virtual packages of the target. `environment` may override each (CONDA_OVERRIDE_GLIBC and
/// so on; empty: absent). `machine` is the tree of this machine.
Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const Target& target,
                                                     const image::TreeView& machine);

/// This machine's subdir in channels: "linux-64".
std::string this_subdir();

} // namespace containerize::conda
