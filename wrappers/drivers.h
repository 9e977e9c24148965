// The node's drivers and libraries that a session adds to a base.
#pragma once

#include "runtime/root.h"

#include <string>

namespace containerize {

/// Finds them for the base (its tree is `root`) of the installation at `prefix`. $CONTAINERIZE_GPU overrides
/// the manifest.
runtime::Injection find_drivers(const image::TreeView& root, const runtime::Manifest& manifest,
                                const std::string& prefix);

} // namespace containerize
