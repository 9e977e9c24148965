#include "pip/git_logins.h"

#include "core/text.h"
#include "pip/http_login.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace containerize::pip {

namespace {

bool is_of_git(std::string_view text, const HttpLogin& found) {
    return text.substr(0, found.scheme).ends_with("git+");
}

/// The repository's URL without pip's "@REVISION" and whatever follows.
std::string_view repository_at(std::string_view text) {
    text = text.substr(0, text.find_first_of(" \t\"'#?;"));
    const auto path = std::min(text.find('/'), text.size());
    const auto revision = text.rfind('@');
    return revision == text.npos || revision < path ? text : text.substr(0, revision);
}

GitLogin git_login_at(std::string_view text, const HttpLogin& found) {
    auto login = login_at(text, found);
    return {.repository = std::string(text.substr(found.scheme, found.login - found.scheme)) +
                          std::string(repository_at(text.substr(found.host))),
            .user = std::move(login.user),
            .password = std::move(login.password)};
}

std::string host_of(const std::string& repository) {
    return repository.substr(0, repository.find('/', repository.find("://") + 3));
}

/// Adds settings for git in GIT_CONFIG_ variables.
class Settings {
public:
    explicit Settings(Environment& environment)
        : environment_(environment),
          count_(to_number<unsigned long>(variable(environment, "GIT_CONFIG_COUNT")).value_or(0)) {}

    void add(const std::string& key, const std::string& value) {
        environment_["GIT_CONFIG_KEY_" + std::to_string(count_)] = key;
        environment_["GIT_CONFIG_VALUE_" + std::to_string(count_)] = value;
        environment_["GIT_CONFIG_COUNT"] = std::to_string(++count_);
    }

private:
    Environment& environment_;
    unsigned long count_;
};

/// A credential helper: a shell command that prints the login from variables.
std::string helper(std::size_t number) {
    const auto name = "CONTAINERIZE_GIT_" + std::to_string(number);
    return "!tell() { test \"$1\" != get || printf 'username=%s\\npassword=%s\\n' \"$" + name +
           "_USER\" \"$" + name + "_PASSWORD\"; }; tell";
}

void add_settings(const GitLogin& login, std::size_t number, const std::string& place, Settings& settings) {
    const auto key = "credential." + place + ".";
    // A password replaces the user's own helpers. A user name alone keeps them: they may know its password.
    if (login.password)
        settings.add(key + "helper", "");
    else
        settings.add(key + "username", login.user);
    settings.add(key + "helper", helper(number));
}

} // namespace

std::vector<GitLogin> git_logins_in(const spec::Requirements& requirements) {
    std::vector<GitLogin> logins;
    for (const auto& line : requirements.lines)
        for (const auto& found :
             find_http_logins(line.text, std::bind_front(is_of_git, std::string_view(line.text))))
            logins.push_back(git_login_at(line.text, found));
    return logins;
}

std::string without_git_logins(std::string_view text) {
    return without_http_logins(text, std::bind_front(is_of_git, text));
}

void hand_to_git(const std::vector<GitLogin>& logins, Environment& environment) {
    Settings settings(environment);
    std::set<std::string> hosts;
    for (std::size_t i = 0; i < logins.size(); ++i) {
        const auto name = "CONTAINERIZE_GIT_" + std::to_string(i);
        environment[name + "_USER"] = logins[i].user;
        environment[name + "_PASSWORD"] = logins[i].password.value_or("");
        if (const auto host = host_of(logins[i].repository); hosts.insert(host).second)
            add_settings(logins[i], i, host, settings);
    }
    // git uses all matching settings, so those for a repository must follow those for its host.
    for (std::size_t i = 0; i < logins.size(); ++i)
        add_settings(logins[i], i, logins[i].repository, settings);
}

} // namespace containerize::pip
