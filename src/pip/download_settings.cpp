#include "pip/download_settings.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "pip/http_login.h"
#include "spec/requirement_options.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

namespace containerize::pip {

namespace {

/// In the words of pip's settings, which uv gets, too.
http::Settings settings_without_logins() {
    http::Settings http;
    http.advice.address = "the index";
    http.advice.login = "the index URL or ~/.netrc.";
    http.advice.certificates = "pip's setting `cert`";
    return http;
}

/// Collects the logins of servers, each of which can only have one here.
class ServerLogins {
public:
    void add(const std::string& server, std::string user, std::string password) {
        http::Login login{.url = server, .user = std::move(user), .password = std::move(password)};
        const auto& first = logins_.emplace(server, login).first->second;
        if (first.user != login.user || first.password != login.password) ambiguous = server;
    }

    void add_from(const std::string& text) {
        for (const auto& found : find_http_logins(text, [&](const HttpLogin& one) {
                 return one.scheme == 0 || text[one.scheme - 1] != '+'; // git's
             })) {
            auto [user, password] = login_at(text, found);
            add(server_of(text.substr(found.scheme, found.login - found.scheme) +
                          text.substr(found.host, found.end - found.host)),
                std::move(user), password.value_or(""));
        }
    }

    /// "https://host:8443" for a URL without a login.
    static std::string server_of(const std::string& url) {
        const auto host = url.find("://") + 3;
        return url.substr(0, url.find_first_of("/?#", host));
    }

    [[nodiscard]] std::vector<http::Login> list() const {
        std::vector<http::Login> list;
        for (const auto& [server, login] : logins_)
            list.push_back(login);
        return list;
    }

    std::string ambiguous; ///< a server with different logins

private:
    std::map<std::string, http::Login> logins_;
};

constexpr auto index_variables_of_uv =
    std::to_array<const char*>({"UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"});

std::string value_in(const Environment& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
}

/// "my-index" -> "MY_INDEX"
std::string in_variable(std::string_view index) {
    auto name = upper(index);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

/// Takes over the logins in UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD. Returns a NAME that no
/// variable explains; empty if there is none.
std::string add_named_logins(const Environment& environment, ServerLogins& logins) {
    constexpr std::string_view prefix = "UV_INDEX_";
    std::map<std::string, std::string> servers;
    for (const auto* variable : index_variables_of_uv)
        for (const auto& word : words_in(value_in(environment, variable), " "))
            if (const auto equals = word.find('='); equals < word.find("://"))
                servers[in_variable(word.substr(0, equals))] =
                    ServerLogins::server_of(without_credentials(word.substr(equals + 1)));
    for (const auto& [variable, value] : environment)
        for (const std::string_view suffix : {"_USERNAME", "_PASSWORD"}) {
            if (!variable.starts_with(prefix) || !variable.ends_with(suffix) || value.empty()) continue;
            if (variable.size() <= prefix.size() + suffix.size()) continue;
            const auto name = variable.substr(prefix.size(), variable.size() - prefix.size() - suffix.size());
            const auto server = servers.find(name);
            if (server == servers.end()) return name;
            const auto start = std::string(prefix) + name;
            logins.add(server->second, value_in(environment, start + "_USERNAME"),
                       value_in(environment, start + "_PASSWORD"));
        }
    return {};
}

/// The first setting of pip that http/ cannot follow; empty if there is none.
std::string obstacle_in(const std::vector<Setting>& settings) {
    for (const auto& setting : settings) {
        const bool asks_programs =
            setting.name == "keyring-provider" && setting.value != "auto" && setting.value != "disabled";
        if (asks_programs || setting.name == "trusted-host" || setting.name == "client-cert")
            return "only pip itself can follow its setting '" + setting.name + "'";
    }
    return {};
}

std::string obstacle_for_uv(const Environment& environment) {
    for (const auto* name : {"UV_INSECURE_HOST", "SSL_CLIENT_CERT"})
        if (!value_in(environment, name).empty()) return std::string("only uv itself can follow ") + name;
    if (const auto provider = value_in(environment, "UV_KEYRING_PROVIDER");
        !provider.empty() && provider != "disabled")
        return "only uv itself can follow UV_KEYRING_PROVIDER";
    return {};
}

bool trusts_hosts(const spec::Requirements& requirements) {
    return std::ranges::any_of(requirements.lines, [](const spec::RequirementLine& line) {
        return spec::has_option(line.text, "--trusted-host");
    });
}

} // namespace

DownloadSettings download_settings(const std::vector<Setting>& settings,
                                   const spec::Requirements& requirements, const Environment& environment,
                                   bool by_uv) {
    DownloadSettings result{.http = settings_without_logins()};
    result.obstacle = by_uv ? obstacle_for_uv(environment) : obstacle_in(settings);
    if (trusts_hosts(requirements)) result.obstacle = "only pip itself can follow --trusted-host";
    ServerLogins logins;
    for (const auto& line : requirements.lines)
        logins.add_from(line.text);
    for (const auto& setting : settings) {
        if (setting.name == "index-url" || setting.name == "extra-index-url" || setting.name == "find-links")
            logins.add_from(joined_list(setting.value, " "));
        if (setting.name == "cert") result.http.ca = setting.value;
        if (setting.name == "proxy") result.http.proxies["all"] = setting.value;
    }
    if (by_uv) {
        for (const auto* variable : index_variables_of_uv)
            logins.add_from(value_in(environment, variable));
        logins.add_from(value_in(environment, "UV_FIND_LINKS"));
        if (const auto name = add_named_logins(environment, logins); !name.empty())
            result.obstacle = "only uv's configuration tells the address of the index " + name;
    }
    if (!logins.ambiguous.empty())
        result.obstacle = "there are different logins for " + url_host(logins.ambiguous);
    result.http.logins = logins.list();
    return result;
}

} // namespace containerize::pip
