// Logins in http URLs, wherever those stand in a text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace containerize::pip {

/// Where the parts of "https://user:password@host/path" begin, and where it ends.
struct HttpLogin {
    std::size_t scheme = 0, login = 0, host = 0, end = 0;
};

/// The first at or after `from` that has a login.
std::optional<HttpLogin> find_http_login(std::string_view text, std::size_t from);

} // namespace containerize::pip
