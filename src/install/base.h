// The root that an installation's programs, and the programs of its build, see.
#pragma once

#include "image/tree_view.h"
#include "install/build.h"
#include "install/inputs.h"
#include "runtime/build_namespace.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <filesystem>
#include <memory>
#include <string>

namespace containerize::install {

/// Whether current wheels and packages of conda-forge run with this host's C library: what `--base auto`
/// looks at.
bool host_serves();

/// What `reference` (--base) names; an image that is not here yet is fetched. `copy_to` is empty, or where
/// the image is to be kept.
Result<runtime::Base> find_base(const BuildOptions& options, const std::string& reference);

/// What it holds, to look things up in: an image is not accessible as a mount to who is outside of its
/// namespace.
Result<std::unique_ptr<image::TreeView>> open_tree(const runtime::Base& base);

/// The namespace for programs of a build or a change: their root is that of `inputs.base`, and they see what
/// they are to work with, wherever it is. A place to put a root together is made in `staging`.
Result<runtime::BuildNamespace> make_namespace(const Inputs& inputs, const std::filesystem::path& prefix,
                                               const std::filesystem::path& staging);

} // namespace containerize::install
