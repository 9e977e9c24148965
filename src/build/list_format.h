// The formats in which lists of exact packages are written, and how one is chosen.
#pragma once

#include "core/error.h"
#include "spec/spec.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace containerize::build {

/// As typed; both may be empty.
struct WantedFormat {
    std::string name;             ///< "conda-lock"
    std::filesystem::path output; ///< whose name tells the format, if no other is named
};

/// The possible formats; the first is the default.
using ListFormats = std::span<const spec::SpecKind>;

/// Of a file with a conda environment or with requirements, and of such an installation.
ListFormats formats_of_conda_lock();
ListFormats formats_of_pip_lock();
ListFormats formats_of_conda_export();
ListFormats formats_of_pip_export();

/// What users call the formats.
std::vector<std::string> names_of(ListFormats formats);

/// Fails with an input error that names the possible formats. `what` it is that is written, "a requirements
/// file", is in `where`.
Result<spec::SpecKind> choose_format(const WantedFormat& wanted, ListFormats possible,
                                     const std::string& what, const std::string& where);

} // namespace containerize::build
