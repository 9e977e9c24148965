#include "pip/index_logins.h"

#include "pip/configuration.h"
#include "pip/http_login.h"
#include "util/url.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace containerize::pip {

namespace {

/// Of no URL of git and the like, "git+https://...".
std::optional<HttpLogin> find_login(std::string_view text, std::size_t from) {
    auto found = find_http_login(text, from);
    while (found && found->scheme > 0 && text[found->scheme - 1] == '+')
        found = find_http_login(text, found->host);
    return found;
}

std::string host_name(std::string_view text, const HttpLogin& found) {
    const auto host = text.substr(found.host, found.end - found.host);
    return std::string(host.substr(0, host.find_first_of(":/?#")));
}

IndexLogin login_at(std::string_view text, const HttpLogin& found) {
    const auto given = text.substr(found.login, found.host - found.login - 1);
    const auto colon = std::min(given.find(':'), given.size());
    return {.user = url_decoded(given.substr(0, colon)),
            .password = url_decoded(given.substr(std::min(colon + 1, given.size())))};
}

/// Whether all versions of Python read it as the same word of a netrc file. Quotes and backslashes mean
/// something from 3.11 on, and a '#' may begin a comment.
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
        for (auto found = find_login(text, 0); found; found = find_login(text, found->host)) {
            const auto host = host_name(text, *found);
            const auto login = login_at(text, *found);
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
    std::string result;
    std::size_t done = 0;
    for (auto found = find_login(text, 0); found; found = find_login(text, found->host)) {
        if (!logins.contains(host_name(text, *found))) continue;
        result += text.substr(done, found->login - done);
        done = found->host;
    }
    result += text.substr(done);
    return result;
}

// Of several entries of a host Python takes the last one.
std::string netrc_with(std::string own, const IndexLogins& logins) {
    if (!own.empty()) own += "\n\n"; // a macro ends with an empty line
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
