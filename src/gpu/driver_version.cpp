#include "gpu/driver_version.h"

#include <charconv>

namespace containerize::gpu {

namespace {

/// Removes the first number of `rest` and a dot after it, and returns the number.
unsigned long take_number(std::string_view& rest) {
    unsigned long number = 0;
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), number).ptr;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.starts_with('.'))
        rest.remove_prefix(1);
    else
        rest = {};
    return number;
}

} // namespace

std::strong_ordering compare_versions(std::string_view one, std::string_view other) {
    while (!one.empty() || !other.empty())
        if (const auto order = take_number(one) <=> take_number(other); order != 0) return order;
    return std::strong_ordering::equal;
}

unsigned major_version(std::string_view version) {
    return static_cast<unsigned>(take_number(version));
}

} // namespace containerize::gpu
