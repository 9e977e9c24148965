// How an installation's programs are run: settings that its manifest records and a launch can override.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <string_view>

namespace containerize::manifest {

enum class StagePlace {
    off,
    held, ///< use a copy that a process holds (held_image.h), but make none
    local,
    ram
};

/// Overrides the installation's setting: "auto", "off", "local" or "ram".
inline constexpr const char* stage_variable = "CONTAINERIZE_STAGE";
/// Parses such a setting; "auto" and "" mean `held`. Anything else is an input error.
Result<StagePlace> parse_stage_place(std::string_view text);

/// Limits of PrefetchSetting::size.
inline constexpr std::uint64_t smallest_request = 64U << 10U;
inline constexpr std::uint64_t largest_request = 64U << 20U;

/// A prefetch setting of a site or user: WHEN, or WHEN:SIZE:DEPTH.
struct PrefetchSetting {
    enum class When {
        automatic, ///< if the images are on a network filesystem
        always,
        never
    };
    When when = When::automatic;
    std::uint64_t size = 4U << 20U; ///< largest request, in bytes
    unsigned depth = 8;             ///< concurrent requests
};
/// Parses "auto", "on", "off" or, with size and depth, "auto:4M:8". Anything else is an input error.
Result<PrefetchSetting> parse_prefetch(std::string_view text);

} // namespace containerize::manifest
