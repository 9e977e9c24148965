#include "core/base64.h"

#include <algorithm>
#include <cstdint>

namespace containerize {

std::string base64(std::string_view bytes) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string encoded;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t bits = 0;
        const auto count = std::min<std::size_t>(3, bytes.size() - at);
        for (std::size_t i = 0; i < 3; ++i)
            bits = bits << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
        for (std::size_t i = 0; i <= count; ++i)
            encoded += alphabet[(bits >> (18 - 6 * i)) & 63U];
        encoded.append(3 - count, '=');
    }
    return encoded;
}

} // namespace containerize
