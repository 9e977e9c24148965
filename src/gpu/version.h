// Versions of drivers and symbols: numbers with dots between.
#pragma once

#include <compare>
#include <string_view>

namespace containerize::gpu {

/// Number by number; one that is missing is 0, and what is no number ends a version: "570.86" < "570.86.15".
std::strong_ordering compare_versions(std::string_view one, std::string_view other);
/// The first number of a version; 0 if there is none.
unsigned major_version(std::string_view version);

} // namespace containerize::gpu
