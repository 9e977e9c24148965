// JSON that others wrote.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize {

/// As json::parse(), by whose exceptions it reports. Refused is also what is nested deeper than any real
/// file: copying and writing a value calls itself for each level.
nlohmann::json parse_json(std::string_view text);

/// The same without exceptions: a discarded value.
nlohmann::json parse_json_quietly(std::string_view text);

/// A whole number that fits; an exception of json's for anything else. get() would take any number for one,
/// though what does not fit is undefined behaviour: 1e40, say.
template<std::integral Number>
Number to_integer(const nlohmann::json& value) {
    if (value.is_number_unsigned()) {
        if (const auto number = value.get<std::uint64_t>(); std::in_range<Number>(number))
            return static_cast<Number>(number);
    } else if (value.is_number_integer()) {
        if (const auto number = value.get<std::int64_t>(); std::in_range<Number>(number))
            return static_cast<Number>(number);
    }
    throw nlohmann::json::type_error::create(302, "a number must be whole, and fit", nullptr);
}

/// What `problem`, which came of reading `text`, says, in words for users: with the line, and without the
/// text itself.
std::string reason(const nlohmann::json::exception& problem, std::string_view text);

} // namespace containerize
