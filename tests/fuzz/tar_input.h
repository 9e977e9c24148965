// How harnesses get tar archives.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace containerize::fuzz {

/// Each header gets the correct checksum, because a fuzzer would hardly find one.
inline std::string with_checksums(std::string_view bytes) {
    constexpr std::size_t block = 512, sum_at = 148, sum_size = 8, magic_at = 257;
    std::string archive(bytes);
    for (std::size_t start = 0; start + block <= archive.size(); start += block) {
        if (bytes.substr(start + magic_at, 5) != "ustar") continue;
        archive.replace(start + sum_at, sum_size, sum_size, ' ');
        unsigned sum = 0;
        for (const char c : std::string_view(archive).substr(start, block))
            sum += static_cast<unsigned char>(c);
        std::array<char, sum_size> text{};
        std::snprintf(text.data(), text.size(), "%06o", sum);
        archive.replace(start + sum_at, sum_size, text.data(), sum_size);
    }
    return archive;
}

} // namespace containerize::fuzz
