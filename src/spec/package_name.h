// Names, versions and checksums of Python packages.
#pragma once

#include "wheel/names.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::spec {

using wheel::normalised_name;

/// Whether it is a name as PyPI has them, and so can be followed by a version or an option.
bool is_package_name(std::string_view text);
bool is_package_version(std::string_view text);

/// Whether pip and uv can verify a file by this checksum, "sha256:...".
bool is_strong_checksum(std::string_view text);

/// The digits of the sha256 checksum of a package that has one file; empty if there is none.
std::string only_sha256(const std::vector<std::string>& checksums);

} // namespace containerize::spec
