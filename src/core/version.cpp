#include "core/version.h"

#include "core/text.h"

#include <vector>

namespace containerize {

namespace {

/// The three numbers; none if `text` is no version.
std::vector<unsigned> numbers_of(std::string_view text) {
    std::vector<unsigned> numbers;
    for (const auto part : split(text, '.')) {
        const auto number = to_number<unsigned>(part);
        if (!number) return {};
        numbers.push_back(*number);
    }
    return numbers.size() == 3 ? numbers : std::vector<unsigned>();
}

} // namespace

bool is_newer(std::string_view one, std::string_view other) {
    return numbers_of(one) > numbers_of(other);
}

} // namespace containerize
