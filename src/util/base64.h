// Base64, for HTTP headers, logins and the checksums of wheels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace containerize {

/// With the standard alphabet and padding.
std::string base64(std::string_view bytes);
/// Padding may be missing; nullopt if it is not base64.
std::optional<std::string> from_base64(std::string_view encoded);

} // namespace containerize
