// Logins in http URLs, wherever those stand in a text.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// Where the parts of "https://user:password@host/path" begin, and where it ends.
struct HttpLogin {
    std::size_t scheme = 0, login = 0, host = 0, end = 0;
};

/// Those for which `wanted` holds, in their order.
using IsWanted = std::function<bool(const HttpLogin&)>;
std::vector<HttpLogin> find_http_logins(std::string_view text, const IsWanted& wanted);

/// `text` with those URLs as they are without logins.
std::string without_http_logins(std::string_view text, const IsWanted& wanted);

struct UserAndPassword {
    std::string user;
    std::optional<std::string> password;
};
/// Decoded.
UserAndPassword login_at(std::string_view text, const HttpLogin& found);

} // namespace containerize::pip
