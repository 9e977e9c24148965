#include "image/writer.h"

#include <charconv>

namespace containerize::image {

namespace {

template<class Number>
bool parse_number(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

} // namespace

Result<Compression> parse_compression(std::string_view text) {
    if (text == "none") return Compression{.compressor = Compressor::none, .level = 0};
    if (text == "lz4") return Compression{.compressor = Compressor::lz4, .level = 0};
    Compression zstd;
    static constexpr std::string_view with_level = "zstd:";
    if (text.starts_with(with_level)) {
        if (parse_number(text.substr(with_level.size()), zstd.level) && zstd.level >= 1 && zstd.level <= 22)
            return zstd;
    } else if (text == "zstd") {
        return zstd;
    }
    return fail_input("invalid compression: '" + std::string(text) + "'", {}, {},
                      "Give zstd:LEVEL with a level from 1 to 22, lz4 or none.");
}

Result<std::uint32_t> parse_block_size(std::string_view text) {
    std::string_view digits = text;
    std::uint64_t unit = 1;
    if (text.ends_with('K') || text.ends_with('k')) unit = 1024;
    if (text.ends_with('M') || text.ends_with('m')) unit = std::uint64_t{1024} * 1024;
    if (unit != 1) digits.remove_suffix(1);
    std::uint64_t number = 0;
    const bool parsed = parse_number(digits, number) && number <= (1U << 20U);
    const std::uint64_t bytes = number * unit;
    if (!parsed || bytes < 4096 || bytes > (std::uint64_t{1} << 20U) || (bytes & (bytes - 1)) != 0)
        return fail_input("invalid block size: '" + std::string(text) + "'", {}, {},
                          "Give a power of two from 4K to 1M, such as 128K.");
    return static_cast<std::uint32_t>(bytes);
}

} // namespace containerize::image
