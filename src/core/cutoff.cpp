#include "core/cutoff.h"

#include "core/text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

namespace containerize {

namespace {

constexpr std::int64_t minute = 60;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;
/// More than a person means, and no overflow.
constexpr std::size_t most_digits = 6;
/// 9999-12-31T23:59:59Z, the last time that RFC 3339 can write.
constexpr std::int64_t latest = 253'402'300'799;

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// Takes a number of exactly so many digits, and the character before it unless that is 0.
std::optional<int> take_number(std::string_view& text, std::size_t digits, char before = 0) {
    if (before != 0) {
        if (!text.starts_with(before)) return std::nullopt;
        text.remove_prefix(1);
    }
    const auto part = text.substr(0, digits);
    if (part.size() != digits || !is_number(part)) return std::nullopt;
    text.remove_prefix(digits);
    return to_number<int>(part);
}

/// "2026-01-31", as seconds since 1970.
std::optional<std::int64_t> take_date(std::string_view& text) {
    const auto year = take_number(text, 4);
    const auto month = year ? take_number(text, 2, '-') : std::nullopt;
    const auto of_month = month ? take_number(text, 2, '-') : std::nullopt;
    if (!of_month) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*of_month))};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days(date).time_since_epoch().count() * day;
}

/// "12:00:00.5+01:00", as seconds.
std::optional<std::int64_t> take_time(std::string_view& text) {
    const auto hours = take_number(text, 2);
    const auto minutes = hours ? take_number(text, 2, ':') : std::nullopt;
    const auto seconds = minutes ? take_number(text, 2, ':') : std::nullopt;
    if (!seconds || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt; // 60: a leap second
    if (text.starts_with('.')) {
        const auto end = std::min(text.find_first_not_of("0123456789", 1), text.size());
        if (end == 1) return std::nullopt;
        text.remove_prefix(end);
    }
    const std::int64_t time = *hours * hour + *minutes * minute + *seconds;
    if (text == "Z" || text == "z") return time;
    const std::int64_t sign = text.starts_with('-') ? -1 : 1;
    const auto east = take_number(text, 2, sign < 0 ? '-' : '+');
    const auto rest = east ? take_number(text, 2, ':') : std::nullopt;
    if (!rest || *east > 23 || *rest > 59 || !text.empty()) return std::nullopt;
    return time - sign * (*east * hour + *rest * minute);
}

std::optional<std::int64_t> moment(std::string_view text) {
    const auto date = take_date(text);
    if (!date) return std::nullopt;
    if (text.empty()) return *date + day;
    if (text.front() != 'T' && text.front() != 't' && text.front() != ' ') return std::nullopt;
    text.remove_prefix(1);
    const auto time = take_time(text);
    if (!time) return std::nullopt;
    return *date + *time;
}

std::optional<std::int64_t> duration(std::string_view text) {
    static constexpr auto units =
        std::to_array<std::pair<std::string_view, std::int64_t>>({{"h", hour},
                                                                  {"hour", hour},
                                                                  {"hours", hour},
                                                                  {"d", day},
                                                                  {"day", day},
                                                                  {"days", day},
                                                                  {"w", 7 * day},
                                                                  {"week", 7 * day},
                                                                  {"weeks", 7 * day}});
    auto written = lower(text);
    std::string_view rest = written;
    if (rest.starts_with("pt") && rest.ends_with('h'))
        rest.remove_prefix(2);
    else if (rest.starts_with('p') && (rest.ends_with('d') || rest.ends_with('w')))
        rest.remove_prefix(1);
    const auto digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto unit = trimmed(rest.substr(digits.size()));
    if (digits.empty() || digits.size() > most_digits) return std::nullopt;
    for (const auto& [name, seconds] : units)
        if (unit == name) return to_number<std::int64_t>(digits).value_or(0) * seconds;
    return std::nullopt;
}

} // namespace

std::string Cutoff::text() const {
    const std::time_t when = seconds;
    std::tm parts{};
    gmtime_r(&when, &parts);
    std::array<char, 32> result{};
    return {result.data(), std::strftime(result.data(), result.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Result<Cutoff> parse_cutoff(std::string_view text, std::int64_t now) {
    const std::string hint =
        "Give a date (2026-01-31), a time (2026-01-31T12:00:00Z) or how long ago it is (7 days).";
    const auto given = trimmed(text);
    auto seconds = moment(given);
    if (!seconds)
        if (const auto before = duration(given)) seconds = now - *before;
    if (!seconds)
        return fail_input("'" + std::string(text) + "' is neither a time nor a duration", {}, {}, hint);
    // No package is older, and pip and uv do not understand all of these years.
    if (*seconds < 0)
        return fail_input("'" + std::string(text) + "' leaves out all packages", "it is before 1970", {},
                          hint);
    return Cutoff{std::min(*seconds, latest)};
}

} // namespace containerize
