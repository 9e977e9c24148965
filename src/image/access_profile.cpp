#include "image/access_profile.h"

#include "core/text.h"
#include "image/decompressor.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

#include <unistd.h>

namespace containerize::image {

namespace {

constexpr std::string_view first_line = "containerize-profile 1";
constexpr std::string_view image_word = "image ";
constexpr std::size_t digest_size = 64;
/// Above any image, and low enough that sums do not overflow.
constexpr std::uint64_t largest_start = std::uint64_t{1} << 48U;
constexpr std::uint32_t largest_block = 1U << 20U;

std::unexpected<Error> damaged(const std::filesystem::path& file, std::string why) {
    return fail({.what = "this version cannot read the profile",
                 .why = std::move(why),
                 .where = file.string(),
                 .hint = "Record it again with `containerize profile --replace`."});
}

/// Decimal digits as std::to_string writes them, and nothing else.
template<class Number>
std::optional<Number> number_of(std::string_view text) {
    const bool padded = text.size() > 1 && text.front() == '0';
    return padded ? std::nullopt : to_number<Number>(text);
}

std::optional<ProfileBlock> block_of(std::optional<std::uint64_t> start,
                                     std::optional<std::uint32_t> size_field) {
    if (!start || !size_field || *start >= largest_start) return std::nullopt;
    const std::uint32_t stored = *size_field & (block_stored_uncompressed - 1);
    if (*size_field >= 2 * block_stored_uncompressed || stored == 0 || stored > largest_block)
        return std::nullopt;
    return ProfileBlock{.start = *start, .size_field = *size_field};
}

/// "START SIZE,SIZE,...": adjacent blocks of the image.
bool append_run(std::string_view line, std::vector<ProfileBlock>& blocks) {
    const auto first = take_until(line, ' ');
    auto start = first ? number_of<std::uint64_t>(*first) : std::nullopt;
    if (!start) return false;
    for (const auto size : split(line, ',')) {
        const auto block = block_of(start, number_of<std::uint32_t>(size));
        if (!block || blocks.size() == most_profile_blocks) return false;
        blocks.push_back(*block);
        start = block->end();
    }
    return true;
}

/// Takes what follows the last tab, and the tab; nullopt if there is none.
std::optional<std::string_view> take_last(std::string_view& line) {
    const auto tab = line.rfind('\t');
    if (tab == line.npos) return std::nullopt;
    const auto last = line.substr(tab + 1);
    line = line.substr(0, tab);
    return last;
}

bool has_duplicates(const std::vector<ProfileBlock>& blocks) {
    std::unordered_set<std::uint64_t> starts;
    return !std::ranges::all_of(blocks, [&](const auto& block) { return starts.insert(block.start).second; });
}

} // namespace

std::uint64_t Profile::bytes() const {
    return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& block) { return sum + block.stored(); });
}

Result<Profile> parse_profile(std::string_view text, const std::filesystem::path& file) {
    if (text.size() > largest_profile) return damaged(file, "it is too large");
    if (take_until(text, '\n') != first_line) return damaged(file, "it does not start with a profile header");
    const auto image = take_until(text, '\n');
    if (!image || !image->starts_with(image_word) || !is_hex(image->substr(image_word.size()), digest_size))
        return damaged(file, "it does not name its image");
    Profile profile{.image = std::string(image->substr(image_word.size())), .blocks = {}};
    while (!text.empty()) {
        const auto line = take_until(text, '\n');
        if (!line || !append_run(*line, profile.blocks)) return damaged(file, "it contains a damaged line");
    }
    if (has_duplicates(profile.blocks)) return damaged(file, "it contains a block twice");
    return profile;
}

std::string to_text(const Profile& profile) {
    std::string text;
    text.append(first_line).append("\n").append(image_word).append(profile.image);
    std::uint64_t end = 0;
    for (const auto& block : profile.blocks) {
        if (block.start == end && end != 0)
            text += ',';
        else
            text.append("\n").append(std::to_string(block.start)).append(" ");
        text += std::to_string(block.size_field);
        end = block.end();
    }
    return text + "\n";
}

Profile merged(Profile first, const Profile& second) {
    std::unordered_set<std::uint64_t> known;
    for (const auto& block : first.blocks)
        known.insert(block.start);
    for (const auto& block : second.blocks)
        if (first.blocks.size() < most_profile_blocks && known.insert(block.start).second)
            first.blocks.push_back(block);
    return first;
}

std::vector<Extent> requests_for(const std::vector<ProfileBlock>& blocks, const RequestShape& shape) {
    std::vector<std::size_t> by_place(blocks.size());
    std::iota(by_place.begin(), by_place.end(), std::size_t{0});
    std::ranges::sort(by_place, {}, [&](std::size_t index) { return blocks[index].start; });
    std::vector<Extent> extents;
    const auto cut = [&](std::uint64_t begin, std::uint64_t end) {
        const std::uint64_t largest = begin + shape.size;
        const std::uint64_t border =
            shape.alignment == 0 ? largest : (begin / shape.alignment + 1) * shape.alignment;
        return std::min({end, largest, border});
    };
    for (const auto index : by_place) {
        const auto& block = blocks[index];
        std::uint64_t begin = block.start;
        // Extends the last request as far as it may go, if the block is near.
        if (!extents.empty() && block.start <= extents.back().end + shape.gap) {
            auto& last = extents.back();
            const auto end = cut(last.begin, std::max(last.end, block.end()));
            if (end > block.start) last.first = std::min(last.first, index);
            if (end > block.start) last.end = std::max(last.end, end);
            begin = std::max(begin, last.end);
        }
        while (begin < block.end()) {
            const auto end = cut(begin, block.end());
            extents.push_back({.begin = begin, .end = end, .first = index});
            begin = end;
        }
    }
    std::ranges::sort(extents, {}, &Extent::first);
    return extents;
}

void Recorder::note(const std::string& image, const ProfileBlock& block) {
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most_profile_blocks || !known_.emplace(image, block.start).second) return;
    const std::string line =
        image + "\t" + std::to_string(block.start) + "\t" + std::to_string(block.size_field) + "\n";
    // A block that is not recorded will be read when it is needed.
    [[maybe_unused]] const auto written = write(file_.get(), line.data(), line.size());
}

Result<std::map<std::string, std::vector<ProfileBlock>>> parse_record(std::string_view text,
                                                                      const std::filesystem::path& file) {
    std::map<std::string, std::vector<ProfileBlock>> record;
    std::set<std::pair<std::string, std::uint64_t>> known;
    while (!text.empty()) {
        auto line = take_until(text, '\n').value_or("");
        // The path may contain tabs.
        const auto size_field = take_last(line);
        const auto start = take_last(line);
        const auto image = line;
        const auto block = start && size_field ? block_of(number_of<std::uint64_t>(*start),
                                                          number_of<std::uint32_t>(*size_field))
                                               : std::nullopt;
        if (!block)
            return fail({.what = "cannot read the recorded files",
                         .why = "it contains a damaged line",
                         .where = file.string(),
                         .hint = "Record them again."});
        if (known.emplace(image, block->start).second) record[std::string(image)].push_back(*block);
    }
    return record;
}

} // namespace containerize::image
