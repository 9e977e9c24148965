// Writes the packages of an installation as a file from which this or another tool installs them again.
#pragma once

#include "build/list_format.h"
#include "core/error.h"
#include "spec/written_list.h"

#include <filesystem>
#include <string>

namespace containerize::build {

/// The list of a conda environment's packages. Notes what a list of this format cannot contain.
spec::WrittenList list_of(const spec::LockedEnvironment& locked, const std::string& subdir,
                          spec::SpecKind format);

/// The file in which an installation records its exact packages. Fails with an input error if there is none.
Result<std::filesystem::path> record_of_packages(const std::filesystem::path& prefix);

/// The list of the packages that the record of an installation has.
Result<spec::WrittenList> export_packages(const std::filesystem::path& record, const WantedFormat& wanted);

} // namespace containerize::build
