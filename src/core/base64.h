// Base64, for HTTP headers and the checksums of wheels.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// With the standard alphabet and padding.
std::string base64(std::string_view bytes);

} // namespace containerize
