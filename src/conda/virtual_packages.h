// Detects virtual packages, which describe the machine: "__glibc", "__linux", "__cuda" and so on.
#pragma once

#include "conda/package_pool.h"
#include "util/process.h"

#include <optional>
#include <string>
#include <vector>

namespace containerize::conda {

/// Returns conda's virtual packages of this machine. `environment` may override each (CONDA_OVERRIDE_GLIBC
/// and so on; empty: absent). `cuda`, unless empty, is the CUDA version of the nodes that will run the
/// programs. `glibc`, if set, is the version of the C library in their root filesystem; empty if that is not
/// glibc.
Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const std::string& cuda,
                                                     const std::optional<std::string>& glibc);

/// This machine's subdir in channels: "linux-64".
std::string this_subdir();

} // namespace containerize::conda
