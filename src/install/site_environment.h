// Variables that a configuration gives to every installation.
#pragma once

#include "install/build.h"
#include "runtime/environment.h"

#include <vector>

namespace containerize::install {

/// Puts them to the changes that an installation records. What these set themselves stays, unless the site
/// forces its own; doing it again changes nothing.
void add_site_environment(const SiteSettings& site, std::vector<runtime::EnvironmentChange>& changes);

} // namespace containerize::install
