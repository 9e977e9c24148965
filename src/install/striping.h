// On Lustre a file is on one server unless somebody says otherwise: an image that many nodes read at once
// should be on several.
#pragma once

#include "util/process.h"

#include <cstdint>
#include <filesystem>

namespace containerize::install {

/// On how many servers: one for each 64 MiB, at most 16.
unsigned stripes_for(std::uint64_t bytes);

/// Makes `directory`, whose files get so many stripes of 16 MiB, by Lustre's program `lfs`. False, and no
/// directory, where that is not on PATH or fails: what there is works without it.
bool make_striped_directory(const std::filesystem::path& directory, unsigned stripes,
                            const Environment& environment);

} // namespace containerize::install
