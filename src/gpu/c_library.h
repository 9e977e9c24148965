// Determines which C library programs of a tree use.
#pragma once

#include "gpu/host_tree.h"

#include <string>

namespace containerize::gpu {

/// The version that glibc states in its own file, such as "2.41"; empty without glibc.
std::string glibc_version(const TreeView& tree);

} // namespace containerize::gpu
