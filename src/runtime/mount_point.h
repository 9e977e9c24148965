// Directories to mount on, where the disk has none.
#pragma once

#include "util/error.h"

#include <filesystem>

namespace containerize::runtime {

/// Makes `path` exist as a directory in this mount namespace.
Status make_mount_point(const std::filesystem::path& path);

} // namespace containerize::runtime
