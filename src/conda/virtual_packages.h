// What the machine has and packages may need: "__glibc", "__linux", "__cuda" and the like.
#pragma once

#include "conda/package_pool.h"
#include "util/process.h"

#include <optional>
#include <string>
#include <vector>

namespace containerize::conda {

/// Of this machine, as conda has them. `environment` may override each (CONDA_OVERRIDE_GLIBC and so on; empty
/// means absent). `cuda`, if not empty, is the CUDA version that the nodes have on which the result will run;
/// `glibc` the version of the C library that it will run with, if that is not this machine's: empty for one
/// that is not GNU's.
Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const std::string& cuda,
                                                     const std::optional<std::string>& glibc);

/// "linux-64": the channels' subdir for this machine.
std::string this_subdir();

} // namespace containerize::conda
