// What a session gives a base of the node's drivers.
#pragma once

#include "runtime/root.h"

#include <string>

namespace containerize {

/// For the base (its tree is `root`) of the installation at `prefix`. $CONTAINERIZE_GPU overrides the
/// manifest.
runtime::Injection find_drivers(const image::TreeView& root, const runtime::Manifest& manifest,
                                const std::string& prefix);

} // namespace containerize
