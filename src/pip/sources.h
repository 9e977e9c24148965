// Where pip packages came from, as locks tell it: without logins and values of secret variables.
#pragma once

#include "pip/distributions.h"
#include "pip/resolution.h"
#include "spec/conda_environment.h"

#include <string>

namespace containerize::pip {

spec::PipSource source_of(const Origin& origin);
/// Of a package from an index, the file from which it is installed, or built.
spec::PipSource source_of(const ResolvedPackage& package);

/// The package with its source.
spec::LockedPackage locked_package(const ResolvedPackage& package);

/// The requirement line that installs exactly this package, with a checksum if one is known.
std::string requirement_of(const spec::LockedPackage& package);

} // namespace containerize::pip
