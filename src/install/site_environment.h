// Adds the environment variables of a site's configuration to an installation.
#pragma once

#include "install/build.h"
#include "runtime/environment.h"

#include <vector>

namespace containerize::install {

/// Adds the site's changes to those of an installation. The latter override all but forced ones. Calling it
/// again changes nothing.
void add_site_environment(const SiteSettings& site, std::vector<runtime::EnvironmentChange>& changes);

} // namespace containerize::install
