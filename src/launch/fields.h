// Fields that end with a NUL byte: the format of launch plans and of calls that are passed on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace containerize::launch {

inline void put(std::string& bytes, std::string_view field) {
    bytes.append(field).push_back('\0');
}

/// Removes the first field from `bytes` and returns it; nullopt if none is complete.
inline std::optional<std::string_view> take_field(std::string_view& bytes) {
    const auto end = bytes.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    const auto field = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    return field;
}

} // namespace containerize::launch
