#pragma once

namespace containerize::runtime {

/// The file that makes a directory an installation.
inline constexpr const char* manifest_name = "containerize.json";

} // namespace containerize::runtime
