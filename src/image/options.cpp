#include "core/text.h"
#include "image/writer.h"

namespace containerize::image {

Result<Compression> parse_compression(std::string_view text) {
    if (text == "none") return Compression{.compressor = Compressor::none, .level = 0};
    if (text == "lz4") return Compression{.compressor = Compressor::lz4, .level = 0};
    if (text == "zstd") return Compression();
    static constexpr std::string_view with_level = "zstd:";
    if (text.starts_with(with_level))
        if (const auto level = to_number<int>(text.substr(with_level.size())); level >= 1 && level <= 22)
            return Compression{.compressor = Compressor::zstd, .level = *level};
    return fail_input("not a compression: '" + std::string(text) + "'", {}, {},
                      "Give zstd:LEVEL with a level from 1 to 22, lz4 or none.");
}

Result<std::uint32_t> parse_block_size(std::string_view text) {
    std::string_view digits = text;
    std::uint64_t unit = 1;
    if (text.ends_with('K') || text.ends_with('k')) unit = 1024;
    if (text.ends_with('M') || text.ends_with('m')) unit = std::uint64_t{1024} * 1024;
    if (unit != 1) digits.remove_suffix(1);
    constexpr std::uint64_t largest = std::uint64_t{1} << 20U;
    const auto bytes = std::min(to_number<std::uint64_t>(digits).value_or(0), largest + 1) * unit;
    if (bytes < 4096 || bytes > largest || (bytes & (bytes - 1)) != 0)
        return fail_input("not a block size: '" + std::string(text) + "'", {}, {},
                          "Give a power of two from 4K to 1M, such as 128K.");
    return static_cast<std::uint32_t>(bytes);
}

} // namespace containerize::image
