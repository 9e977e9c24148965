#include "core/text.h"
#include "image/writer.h"

#include <algorithm>
#include <array>

namespace containerize::image {

namespace {

/// A compressor that images can be written with.
struct Choice {
    std::string_view name;
    Compressor compressor;
    int level = 0, highest_level = 0; ///< the level if none is given; both 0 if it has no levels
};
constexpr auto choices = std::to_array<Choice>({
    {.name = "zstd", .compressor = Compressor::zstd, .level = 3, .highest_level = 22},
    {.name = "lz4", .compressor = Compressor::lz4},
    {.name = "none", .compressor = Compressor::none},
});

} // namespace

Result<Compression> parse_compression(std::string_view text) {
    const auto colon = text.find(':');
    const auto* const choice = std::ranges::find(choices, text.substr(0, colon), &Choice::name);
    const auto level = colon == text.npos ? std::nullopt : to_number<int>(text.substr(colon + 1));
    const bool good = choice != choices.end() &&
                      (colon == text.npos || (level && *level >= 1 && *level <= choice->highest_level));
    if (good) return Compression{.compressor = choice->compressor, .level = level.value_or(choice->level)};
    return fail_input("invalid compression: '" + std::string(text) + "'", {}, {},
                      "Give " + compression_forms() + ".");
}

std::string name_of(const Compression& compression) {
    const auto* const choice = std::ranges::find(choices, compression.compressor, &Choice::compressor);
    std::string name(choice == choices.end() ? "unknown" : choice->name);
    return choice != choices.end() && choice->highest_level != 0 ? name + std::to_string(compression.level)
                                                                 : name;
}

std::string compression_forms() {
    std::vector<std::string> forms;
    for (const auto& choice : choices)
        forms.push_back(std::string(choice.name) +
                        (choice.highest_level == 0
                             ? ""
                             : ":LEVEL with a level from 1 to " + std::to_string(choice.highest_level)));
    return listed(forms);
}

Result<std::uint32_t> parse_block_size(std::string_view text) {
    std::string_view digits = text;
    std::uint64_t unit = 1;
    if (text.ends_with('K') || text.ends_with('k')) unit = 1024;
    if (text.ends_with('M') || text.ends_with('m')) unit = std::uint64_t{1024} * 1024;
    if (unit != 1) digits.remove_suffix(1);
    const auto number = to_number<std::uint64_t>(digits);
    const std::uint64_t bytes = number && *number <= (1U << 20U) ? *number * unit : 0;
    if (bytes < 4096 || bytes > (std::uint64_t{1} << 20U) || (bytes & (bytes - 1)) != 0)
        return fail_input("invalid block size: '" + std::string(text) + "'", {}, {},
                          "Give a power of two from 4K to 1M, such as 128K.");
    return static_cast<std::uint32_t>(bytes);
}

} // namespace containerize::image
