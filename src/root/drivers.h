// The node's drivers and libraries that a base gets.
#pragma once

#include "gpu/injection.h"
#include "image/tree_view.h"
#include "manifest/manifest.h"

#include <string>

namespace containerize::root {

/// Finds them for the base (its tree is `root`) of the installation at `prefix`. $CONTAINERIZE_GPU overrides
/// the manifest.
gpu::Injection find_drivers(const image::TreeView& root, const manifest::Manifest& manifest,
                            const std::string& prefix);

} // namespace containerize::root
