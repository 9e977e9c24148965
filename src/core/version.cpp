#include "core/version.h"

#include "core/text.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace containerize {

namespace {

constexpr auto largest = std::numeric_limits<unsigned>::max();

/// The three numbers; none if `text` is empty, and the largest if it is no version.
std::vector<unsigned> numbers_of(std::string_view text) {
    if (text.empty()) return {};
    std::vector<unsigned> numbers;
    for (const auto part : split(text, '.'))
        numbers.push_back(to_number<unsigned>(part).value_or(largest));
    const bool is_version = numbers.size() == 3 && std::ranges::find(numbers, largest) == numbers.end();
    return is_version ? numbers : std::vector<unsigned>(3, largest);
}

} // namespace

bool is_newer(std::string_view one, std::string_view other) {
    return numbers_of(one) > numbers_of(other);
}

} // namespace containerize
