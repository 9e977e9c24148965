#include "pip/index_logins.h"

#include "pip/http_login.h"
#include "pip/pip_configuration.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

namespace containerize::pip {

namespace {

/// Excludes URLs of repositories: "git+https://...".
bool is_of_index(std::string_view text, const HttpLogin& found) {
    return found.scheme == 0 || text[found.scheme - 1] != '+';
}

std::string host_name(std::string_view text, const HttpLogin& found) {
    const auto host = text.substr(found.host, found.end - found.host);
    return std::string(host.substr(0, host.find_first_of(":/?#")));
}

/// Whether all versions of Python parse it as one word of a netrc file. Since 3.11 quotes and backslashes are
/// special, and '#' may start a comment.
bool is_word_of_netrc(std::string_view word) {
    return !word.empty() && !word.starts_with('#') && std::ranges::all_of(word, [](unsigned char c) {
        return c > ' ' && c < 0x7f && c != '"' && c != '\\';
    });
}

} // namespace

IndexLogins index_logins_in(const std::vector<std::string>& texts) {
    IndexLogins logins;
    std::set<std::string> impossible;
    for (const auto& text : texts)
        for (const auto& found :
             find_http_logins(text, std::bind_front(is_of_index, std::string_view(text)))) {
            const auto host = host_name(text, found);
            const auto [user, password] = login_at(text, found);
            const IndexLogin login{.user = user, .password = password.value_or("")};
            const auto& first = logins.emplace(host, login).first->second;
            const bool fits = is_word_of_netrc(login.user) && is_word_of_netrc(login.password);
            const bool is_name = is_word_of_netrc(host) && host.front() != '['; // requests finds no IPv6
            if (!fits || !is_name || first.user != login.user || first.password != login.password)
                impossible.insert(host);
        }
    for (const auto& host : impossible)
        logins.erase(host);
    return logins;
}

std::string without_index_logins(std::string_view text, const IndexLogins& logins) {
    return without_http_logins(text, [&](const HttpLogin& found) {
        return is_of_index(text, found) && logins.contains(host_name(text, found));
    });
}

// Python uses the last entry for a host.
std::string netrc_with(std::string own, const IndexLogins& logins) {
    if (!own.empty()) own += "\n\n"; // an empty line ends a macro
    for (const auto& [host, login] : logins)
        own += "machine " + host + " login " + login.user + " password " + login.password + "\n";
    return own;
}

Environment index_settings(std::string_view configuration) {
    constexpr auto variables =
        std::to_array<std::pair<std::string_view, const char*>>({{"index-url", "PIP_INDEX_URL"},
                                                                 {"extra-index-url", "PIP_EXTRA_INDEX_URL"},
                                                                 {"find-links", "PIP_FIND_LINKS"}});
    Environment settings;
    for (const auto& setting : settings_of_install(configuration))
        for (const auto& [name, variable] : variables)
            if (setting.name == name) settings[variable] = joined_list(setting.value, " ");
    return settings;
}

} // namespace containerize::pip
