// Which C library a tree's programs are linked with when they start.
#pragma once

#include "gpu/tree.h"

#include <set>
#include <string>
#include <string_view>

namespace containerize::gpu {

/// "GLIBC_2.38" of {"GLIBC_2.2.5", "GLIBC_2.38", "GLIBC_PRIVATE"}: the newest with this prefix; empty if
/// there is none.
std::string newest_version(const std::set<std::string>& versions, std::string_view prefix);

/// "2.41", if it is GNU's, by the newest version of its symbols; empty if it is another one or there is none.
std::string glibc_version(const TreeView& tree);

} // namespace containerize::gpu
