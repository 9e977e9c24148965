// Fields that end with a NUL byte: the format of launch plans and of calls that are passed on.
#pragma once

#include "core/text.h"

namespace containerize::launch {

inline void put(std::string& bytes, std::string_view field) {
    bytes.append(field).push_back('\0');
}

/// Removes the first field from `bytes` and returns it; nullopt if none is complete.
inline std::optional<std::string_view> take_field(std::string_view& bytes) {
    return take_until(bytes, '\0');
}

} // namespace containerize::launch
