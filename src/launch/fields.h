// Fields that end with a NUL byte: the format of launch plans and of calls that are passed on.
#pragma once

#include <string>
#include <string_view>

namespace containerize::launch {

inline void put(std::string& bytes, std::string_view field) {
    bytes.append(field).push_back('\0');
}

} // namespace containerize::launch
