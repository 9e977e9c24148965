// Adds the environment variables of a site's configuration to an installation.
#pragma once

#include "inputs/build_options.h"
#include "launch/environment.h"

#include <vector>

namespace containerize::inputs {

/// Adds the site's changes to those of an installation. The latter override all but forced ones. Calling it
/// again changes nothing.
void add_site_environment(const SiteSettings& site, std::vector<launch::EnvironmentChange>& changes);

} // namespace containerize::inputs
