#include "util/base64.h"

#include <cstdint>

#include <nettle/base64.h>

namespace containerize {

std::string base64(std::string_view bytes) {
    std::string encoded(BASE64_ENCODE_RAW_LENGTH(bytes.size()), '\0');
    base64_encode_raw(encoded.data(), bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
    return encoded;
}

std::optional<std::string> from_base64(std::string_view encoded) {
    std::string padded(encoded);
    while (padded.size() % 4 != 0)
        padded += '=';
    base64_decode_ctx state;
    base64_decode_init(&state);
    std::string decoded(BASE64_DECODE_LENGTH(padded.size()), '\0');
    auto size = decoded.size();
    if (base64_decode_update(&state, &size, reinterpret_cast<std::uint8_t*>(decoded.data()), padded.size(),
                             padded.data()) == 0 ||
        base64_decode_final(&state) == 0)
        return std::nullopt;
    decoded.resize(size);
    return decoded;
}

} // namespace containerize
