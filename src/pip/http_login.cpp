#include "pip/http_login.h"

#include "util/url.h"

#include <algorithm>

namespace containerize::pip {

std::optional<HttpLogin> find_http_login(std::string_view text, std::size_t from) {
    constexpr std::string_view mark = "://";
    for (auto at = text.find(mark, from); at != text.npos; at = text.find(mark, at + mark.size())) {
        const auto before = text.substr(0, at);
        const bool secure = before.ends_with("https");
        if (!secure && !before.ends_with("http")) continue;
        const auto login = at + mark.size();
        const auto end = std::min(text.find_first_of(" \t\"'", login), text.size());
        const auto size = url_login_size(text.substr(login, end - login)); // with the '@'
        if (size > 1)
            return HttpLogin{
                .scheme = at - (secure ? 5 : 4), .login = login, .host = login + size, .end = end};
    }
    return std::nullopt;
}

} // namespace containerize::pip
