// JSON that others wrote.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace containerize {

/// As json::parse(), by whose exceptions it reports. Refused is also what is nested deeper than any real
/// file: copying and writing a value calls itself for each level.
nlohmann::json parse_json(std::string_view text);

/// The same without exceptions: a discarded value.
nlohmann::json parse_json_quietly(std::string_view text);

/// What `problem`, which came of reading `text`, says, in words for users: with the line, and without the
/// text itself.
std::string reason(const nlohmann::json::exception& problem, std::string_view text);

} // namespace containerize
