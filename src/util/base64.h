// Bytes as letters, as headers and checksums of wheels have them.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// With padding.
std::string base64(std::string_view bytes);

} // namespace containerize
