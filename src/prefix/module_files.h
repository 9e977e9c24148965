// Writes module files for an installation: in Lua for Lmod, in Tcl for others.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>

namespace containerize::prefix {

struct ModuleRequest {
    std::filesystem::path prefix;
    std::string image;   ///< the lowest image's file, relative to the prefix
    std::string created; ///< date, as text for users
};

/// Creates `directory` and writes NAME.lua and NAME into it, where NAME is the last component of the prefix.
Status write_module_files(const std::filesystem::path& directory, const ModuleRequest& request);

} // namespace containerize::prefix
