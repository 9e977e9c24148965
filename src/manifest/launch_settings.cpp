#include "manifest/launch_settings.h"

#include "core/text.h"

#include <optional>
#include <string>

namespace containerize::manifest {

namespace {

using When = PrefetchSetting::When;

constexpr unsigned most_requests = 64;

std::optional<std::uint64_t> size_of(std::string_view text) {
    std::uint64_t unit = 1;
    if (text.ends_with('K')) unit = 1U << 10U;
    if (text.ends_with('M')) unit = 1U << 20U;
    if (unit != 1) text.remove_suffix(1);
    const auto number = to_number<std::uint32_t>(text);
    if (!number || *number * unit < smallest_request || *number * unit > largest_request) return std::nullopt;
    return *number * unit;
}

std::optional<When> when_of(std::string_view text) {
    if (text == "auto") return When::automatic;
    if (text == "on") return When::always;
    if (text == "off") return When::never;
    return std::nullopt;
}

} // namespace

Result<StagePlace> parse_stage_place(std::string_view text) {
    if (text.empty() || text == "auto") return StagePlace::held;
    if (text == "off") return StagePlace::off;
    if (text == "local") return StagePlace::local;
    if (text == "ram") return StagePlace::ram;
    return fail_input("not a place for copies of images: '" + std::string(text) + "'", {}, {},
                      "Write auto, local, ram or off.");
}

Result<PrefetchSetting> parse_prefetch(std::string_view text) {
    PrefetchSetting setting;
    const auto colon = text.find(':');
    const auto when = when_of(text.substr(0, colon));
    bool good = when.has_value();
    if (good) setting.when = *when;
    if (good && colon != std::string_view::npos) {
        const auto rest = text.substr(colon + 1);
        const auto second = rest.find(':');
        const auto size = size_of(rest.substr(0, second));
        const auto depth =
            second == std::string_view::npos ? std::nullopt : to_number<unsigned>(rest.substr(second + 1));
        good = size && depth && *depth >= 1 && *depth <= most_requests;
        if (good) setting.size = *size;
        if (good) setting.depth = *depth;
    }
    if (good) return setting;
    return fail_input("not how images are read ahead: '" + std::string(text) + "'", {}, {},
                      "Write auto, on or off, and if you like the size (64K to 64M) and number (1 to 64) of "
                      "requests, such as auto:4M:8.");
}

} // namespace containerize::manifest
