// Which C library a tree's programs are linked with when they start.
#pragma once

#include "gpu/tree.h"

#include <string>

namespace containerize::gpu {

/// "2.41", if it is GNU's, as it says of itself; empty if it is another one or there is none.
std::string glibc_version(const TreeView& tree);

} // namespace containerize::gpu
