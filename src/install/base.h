// The root filesystem that an installation's programs, and the programs of its build, see.
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

/// Whether this host's C library is recent enough for current wheels and conda-forge packages. Decides what
/// `--base auto` means.
bool host_serves();

/// Resolves `reference` (the value of --base) and fetches the image if it is not stored locally yet. Fails
/// with an input error for "auto" on an old host without a configured image.
Result<runtime::Base> find_base(const BuildOptions& options, const std::string& reference);

/// Opens the base's root filesystem for path lookups. Reads the image file directly, because a FUSE mount of
/// it cannot be accessed from outside its mount namespace.
Result<std::unique_ptr<image::TreeView>> open_tree(const runtime::Base& base);

/// Creates the namespace in which programs of a build or an update run: with the root of `inputs.base`, plus
/// the host's files that the build needs. Such a root is assembled in `staging`.
Result<runtime::BuildNamespace> make_namespace(const Inputs& inputs, const std::filesystem::path& prefix,
                                               const std::filesystem::path& staging);

} // namespace containerize::install
