// Compares versions of drivers and symbols: numbers separated by dots.
#pragma once

#include <compare>
#include <string_view>

namespace containerize::gpu {

/// Compares number by number: "570.86" < "570.86.15". Missing numbers are 0; other text ends a version.
std::strong_ordering compare_versions(std::string_view one, std::string_view other);
/// Returns the first number; 0 if there is none.
unsigned major_version(std::string_view version);

} // namespace containerize::gpu
