// The root filesystem that an installation's programs, and the programs of its build, see.
#pragma once

#include "core/error.h"
#include "inputs/build_options.h"
#include "manifest/manifest.h"

#include <string>

namespace containerize::inputs {

/// Whether this host's C library is recent enough for current wheels and conda-forge packages. Decides what
/// `--base auto` means.
bool host_serves();

/// Resolves `reference` (the value of --base) and fetches the image if it is not stored locally yet. Fails
/// with an input error for "auto" on an old host without a configured image.
Result<manifest::Base> find_base(const BuildOptions& options, const std::string& reference);

} // namespace containerize::inputs
