#include "conda/channel_logins.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "util/base64.h"
#include "util/json.h"
#include "util/log.h"

#include <ctime>
#include <optional>

#include <nlohmann/json.hpp>

namespace containerize::conda {

namespace {

using nlohmann::json;

/// The JSON object in the file; nothing if the file does not exist.
Result<std::optional<json>> read_object(const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return std::nullopt;
    auto text = TRY(read_input_file(file, 1U << 20U));
    auto object = parse_json_quietly(text);
    // The parser's message would quote secrets.
    if (!object.is_object())
        return fail_input("the file with logins is not valid JSON", {}, file.string(),
                          "Correct the file, or ignore conda's configuration with --no-config.");
    return object;
}

Status read_mamba(const fs::path& file, Config& config) {
    auto object = TRY(read_object(file));
    if (!object) return {};
    for (const auto& [place, login] : (*object).items()) {
        const auto type = text_of(login, "type");
        const std::string key(without_end_slash(place));
        if (type == "CondaToken") {
            config.tokens.try_emplace(key, text_of(login, "token"));
        } else if (type == "BearerToken") {
            config.http.logins.push_back({.url = key, .bearer = text_of(login, "token")});
        } else if (type == "BasicHTTPAuthentication") {
            auto password = from_base64(text_of(login, "password"));
            if (!password)
                return fail_input("the password for '" + key + "' is not valid base64", {}, file.string(),
                                  "Store it again with `micromamba auth login`.");
            config.http.logins.push_back(
                {.url = key, .user = text_of(login, "user"), .password = std::move(*password)});
        } else {
            log::detail(file.string() + ": the login for " + key + " has an unknown type and is ignored");
        }
    }
    return {};
}

/// Adds a login made by `pixi auth login` in a browser. Only pixi can renew it.
void add_oauth(const std::string& key, const json& login, const fs::path& file, Config& config) {
    const auto end = login.is_object() ? login.find("expires_at") : login.end();
    if (end != login.end() && end->is_number_integer() && end->get<std::int64_t>() <= std::time(nullptr))
        log::warn(file.string() + ": the login for " + key +
                  " has expired. `pixi auth login` creates a new one.");
    else if (auto bearer = text_of(login, "access_token"); !bearer.empty())
        config.http.logins.push_back({.url = key, .bearer = std::move(bearer)});
}

Status read_rattler(const fs::path& file, Config& config) {
    auto object = TRY(read_object(file));
    if (!object) return {};
    for (const auto& [place, login] : (*object).items()) {
        const std::string key(without_end_slash(place));
        if (auto token = text_of(login, "CondaToken"); !token.empty())
            config.tokens.try_emplace(key, std::move(token));
        else if (auto bearer = text_of(login, "BearerToken"); !bearer.empty())
            config.http.logins.push_back({.url = key, .bearer = std::move(bearer)});
        else if (login.is_object() && login.contains("BasicHTTP"))
            config.http.logins.push_back({.url = key,
                                          .user = text_of(login["BasicHTTP"], "username"),
                                          .password = text_of(login["BasicHTTP"], "password")});
        else if (login.is_object() && login.contains("OAuth"))
            add_oauth(key, login["OAuth"], file, config);
        else
            log::detail(file.string() + ": the login for " + key + " has an unknown type and is ignored");
    }
    return {};
}

/// Reads files named after the service's URL: "https%3A%2F%2Fapi.anaconda.org.token".
void read_anaconda(const fs::path& directory, Config& config) {
    std::error_code problem;
    for (const auto& entry : entries_in(directory, problem)) {
        if (entry.path().extension() != ".token") continue;
        auto token = read_file(entry.path(), 4096);
        if (!token) continue;
        *token = trimmed(*token);
        const auto address = url_decoded(entry.path().stem().string());
        auto place = without_end_slash(address);
        // The token is stored for the API server, but used on the channel server.
        if (url_host(place) == "api.anaconda.org") place = "conda.anaconda.org";
        if (is_url(place)) place = place.substr(place.find("://") + 3);
        if (!token->empty()) config.tokens.try_emplace(std::string(place), std::move(*token));
    }
}

} // namespace

Status read_logins(const Environment& environment, bool anaconda, Config& config) {
    // A file that the user names takes precedence over the default ones.
    if (const auto file = variable(environment, "RATTLER_AUTH_FILE"); !file.empty())
        TRY(read_rattler(file, config));
    const fs::path directory = variable(environment, "HOME");
    if (directory.empty()) return {};
    TRY(read_mamba(directory / ".mamba/auth/authentication.json", config));
    TRY(read_rattler(directory / ".rattler/credentials.json", config));
    if (!anaconda) return {};
    read_anaconda(directory / ".local/share/binstar", config);
    read_anaconda(directory / ".continuum/anaconda-client/tokens", config);
    return {};
}

} // namespace containerize::conda
