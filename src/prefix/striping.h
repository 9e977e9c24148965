// By default Lustre stores a file on one server. An image that many nodes read at once should be striped over
// several.
#pragma once

#include "util/process.h"

#include <cstdint>
#include <filesystem>

namespace containerize::prefix {

/// The number of servers for a file: one per 64 MiB, at most 16.
unsigned stripes_for(std::uint64_t bytes);

/// Creates `directory`, in which new files get `stripes` stripes of 16 MiB, with Lustre's `lfs`. Returns
/// false, and creates nothing, if `lfs` is not on PATH or fails; striping is optional.
bool make_striped_directory(const std::filesystem::path& directory, unsigned stripes,
                            const Environment& environment);

} // namespace containerize::prefix
