#pragma once

namespace containerize::launch {

/// The file that makes a directory an installation.
inline constexpr const char* manifest_name = "containerize.json";

} // namespace containerize::launch
