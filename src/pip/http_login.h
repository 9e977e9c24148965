// Finds logins in http URLs anywhere in a text.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// Offsets of the parts of "https://user:password@host/path", and of its end.
struct HttpLogin {
    std::size_t scheme = 0, login = 0, host = 0, end = 0;
};

/// Returns the logins for which `wanted` holds, in the order of the text.
using IsWanted = std::function<bool(const HttpLogin&)>;
std::vector<HttpLogin> find_http_logins(std::string_view text, const IsWanted& wanted);

/// Returns `text` with these logins removed.
std::string without_http_logins(std::string_view text, const IsWanted& wanted);

struct UserAndPassword {
    std::string user;
    std::optional<std::string> password = {};
};
/// Returns the login, URL-decoded.
UserAndPassword login_at(std::string_view text, const HttpLogin& found);

} // namespace containerize::pip
