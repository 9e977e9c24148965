#include "pip/http_login.h"

#include "core/url.h"

#include <algorithm>

namespace containerize::pip {

namespace {

/// The first login at or after `from`.
std::optional<HttpLogin> find_http_login(std::string_view text, std::size_t from) {
    constexpr std::string_view mark = "://";
    for (auto at = text.find(mark, from); at != text.npos; at = text.find(mark, at + mark.size())) {
        const auto before = text.substr(0, at);
        const bool secure = before.ends_with("https");
        if (!secure && !before.ends_with("http")) continue;
        const auto login = at + mark.size();
        const auto end = std::min(text.find_first_of(" \t\"'", login), text.size());
        const auto size = url_login_size(text.substr(login, end - login)); // including the '@'
        if (size > 1)
            return HttpLogin{
                .scheme = at - (secure ? 5 : 4), .login = login, .host = login + size, .end = end};
    }
    return std::nullopt;
}

} // namespace

std::vector<HttpLogin> find_http_logins(std::string_view text, const IsWanted& wanted) {
    std::vector<HttpLogin> logins;
    for (auto found = find_http_login(text, 0); found; found = find_http_login(text, found->host))
        if (wanted(*found)) logins.push_back(*found);
    return logins;
}

std::string without_http_logins(std::string_view text, const IsWanted& wanted) {
    std::string result;
    std::size_t done = 0;
    for (const auto& found : find_http_logins(text, wanted)) {
        result += text.substr(done, found.login - done);
        done = found.host;
    }
    result += text.substr(done);
    return result;
}

UserAndPassword login_at(std::string_view text, const HttpLogin& found) {
    const auto given = text.substr(found.login, found.host - found.login - 1);
    const auto colon = given.find(':');
    UserAndPassword login{.user = url_decoded(given.substr(0, colon))};
    if (colon != given.npos) login.password = url_decoded(given.substr(colon + 1));
    return login;
}

} // namespace containerize::pip
