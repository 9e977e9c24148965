// Variables of the caller that starts a session, which control how its servers read images.
#pragma once

#include "core/variable_table.h"

namespace containerize::launch {

/// Overrides the manifest's prefetch setting (cold_start.h).
inline constexpr Variable prefetch_variable = "CONTAINERIZE_PREFETCH";
/// The file in which servers record the blocks that are requested (image/access_profile.h). It must exist.
inline constexpr Variable record_variable = "CONTAINERIZE_RECORD";
/// For tests: the delay of each read of an image, in microseconds.
inline constexpr Variable delay_variable = "CONTAINERIZE_DEBUG_READ_DELAY";

} // namespace containerize::launch
