// Reading JSON from outside sources.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize {

/// Like json::parse(), including its exceptions. Also refuses deeper nesting than any real file has: copying
/// and writing a value recurse for each level.
nlohmann::json parse_json(std::string_view text);

/// The same without exceptions: returns a discarded value.
nlohmann::json parse_json_quietly(std::string_view text);

/// A whole number that fits; throws a json exception for anything else. get() would accept any number, though
/// what does not fit is undefined behaviour: 1e40, say.
template<std::integral Number>
Number to_integer(const nlohmann::json& value) {
    if (value.is_number_unsigned()) {
        if (const auto number = value.get<std::uint64_t>(); std::in_range<Number>(number))
            return static_cast<Number>(number);
    } else if (value.is_number_integer()) {
        if (const auto number = value.get<std::int64_t>(); std::in_range<Number>(number))
            return static_cast<Number>(number);
    }
    throw nlohmann::json::type_error::create(302, "a number is not an integer, or is out of range", nullptr);
}

/// A member of an object, or an empty value if it is missing or of another type, also if `object` is none.
std::string text_of(const nlohmann::json& object, const char* key);
std::vector<std::string> texts_of(const nlohmann::json& object, const char* key); ///< an array's strings
nlohmann::json object_of(const nlohmann::json& object, const char* key);

/// The text as a string of JSON, which is one of TOML and of YAML, too.
std::string quoted(const std::string& text);

/// Describes `problem`, which came from reading `text`, for users: with the line, and without the text
/// itself.
std::string reason(const nlohmann::json::exception& problem, std::string_view text);

} // namespace containerize
