// Variables of whoever starts a session that say how its servers read images.
#pragma once

namespace containerize::runtime {

/// Overrides how the manifest says that images are read ahead (cold_start.h).
inline constexpr const char* prefetch_variable = "CONTAINERIZE_PREFETCH";
/// The file in which servers note which blocks are wanted (image/profile.h). It must exist.
inline constexpr const char* record_variable = "CONTAINERIZE_RECORD";
/// For tests: microseconds that each read of an image waits.
inline constexpr const char* delay_variable = "CONTAINERIZE_DEBUG_READ_DELAY";

} // namespace containerize::runtime
