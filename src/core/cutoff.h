// The moment from which on packages count as too new (--exclude-newer).
#pragma once

#include "core/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace containerize {

struct Cutoff {
    std::int64_t seconds = 0; ///< since 1970, not negative; what was published then or later is too new

    /// In UTC: "2026-02-01T00:00:00Z".
    [[nodiscard]] std::string text() const;
};

/// Parses a timestamp of RFC 3339 ("2026-01-31T12:00:00Z"), a date, whose day is still included (in UTC, so
/// that it means the same on all machines), or how long before `now` it is: "7 days", "24 hours", "2 weeks",
/// or "P7D" of ISO 8601. Fails with an input error, also before 1970.
Result<Cutoff> parse_cutoff(std::string_view text, std::int64_t now);

} // namespace containerize
