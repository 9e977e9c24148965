// Module files for an installation: for Lmod, and in Tcl for the others.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>

namespace containerize::install {

struct ModuleRequest {
    std::filesystem::path prefix;
    std::string image;   ///< the lowest one's file, relative to the prefix
    std::string created; ///< for people
};

/// Writes NAME.lua and NAME into `directory`, which is made; NAME is the last part of the prefix.
Status write_module_files(const std::filesystem::path& directory, const ModuleRequest& request);

} // namespace containerize::install
