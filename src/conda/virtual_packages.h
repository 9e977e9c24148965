// Platforms, and the virtual packages that describe a machine: "__glibc", "__linux", "__cuda" and so on.
#pragma once

#include "conda/package_pool.h"
#include "core/variables.h"
#include "image/tree_view.h"

#include <string>
#include <vector>

namespace containerize::conda {

/// This machine's platform as channels call it: "linux-64".
std::string this_subdir();

/// The platforms for which any machine can choose packages: "linux-64", "linux-aarch64", "linux-ppc64le".
std::vector<std::string> platforms();

/// What packages are chosen for.
struct Target {
    std::string subdir = this_subdir();
    /// The CUDA version of the nodes that will run the programs. Empty: this machine's; none for another
    /// platform.
    std::string cuda = {};
    /// The root filesystem whose C library the programs use; null: this machine's. Ignored for another
    /// platform.
    const image::TreeView* root = nullptr;
};

/// Returns conda's virtual packages of the target. `environment` may override each (CONDA_OVERRIDE_GLIBC and
/// so on; empty: absent). `machine` is the tree of this machine. For another platform, the oldest system is
/// assumed that containerize and current packages support.
Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const Target& target,
                                                     const image::TreeView& machine);

} // namespace containerize::conda
