#include "base/registry_logins.h"

#include "core/fd.h"
#include "core/filesystem.h"
#include "util/base64.h"
#include "util/json.h"
#include "util/log.h"
#include "util/process.h"

#include <algorithm>
#include <vector>

#include <sys/mman.h>

#include <nlohmann/json.hpp>

namespace containerize::base {

namespace {

using nlohmann::json;
using Found = Result<std::optional<RegistryLogin>>;

std::vector<fs::path> files(const Environment& environment) {
    std::vector<fs::path> found;
    if (const auto file = variable(environment, "REGISTRY_AUTH_FILE"); !file.empty())
        found.emplace_back(file);
    if (const auto runtime = variable(environment, "XDG_RUNTIME_DIR"); !runtime.empty())
        found.push_back(fs::path(runtime) / "containers/auth.json");
    const fs::path home = variable(environment, "HOME");
    if (const auto docker = variable(environment, "DOCKER_CONFIG"); !docker.empty())
        found.push_back(fs::path(docker) / "config.json");
    else if (!home.empty())
        found.push_back(home / ".docker/config.json");
    if (home.empty()) return found;
    found.push_back(home / ".apptainer/docker-config.json");
    found.push_back(home / ".singularity/docker-config.json");
    return found;
}

/// "https://index.docker.io/v1/" -> "docker.io".
std::string plain_key(std::string_view key) {
    if (const auto scheme = key.find("://"); scheme != key.npos) key.remove_prefix(scheme + 3);
    while (key.ends_with('/'))
        key.remove_suffix(1);
    for (const std::string_view version : {"/v1", "/v2"})
        if (key.ends_with(version)) key.remove_suffix(version.size());
    if (key == "index.docker.io" || key == "registry-1.docker.io") return "docker.io";
    return std::string(key);
}

/// The keys by which a login may be stored, the longest first.
std::vector<std::string> keys_for(const std::string& registry, const std::string& repository) {
    std::vector<std::string> keys;
    for (auto key = registry + "/" + repository; key.size() > registry.size(); key.resize(key.rfind('/')))
        keys.push_back(key);
    keys.push_back(registry);
    return keys;
}

std::unexpected<Error> bad_file(const fs::path& file, std::string why) {
    return fail_input("cannot read the registry logins", std::move(why), file.string(),
                      "Correct or remove the file. `docker login` and `podman login` write it.");
}

Found login_of(const json& entry, const std::string& key, const fs::path& file) {
    auto user = text_of(entry, "username");
    auto password = text_of(entry, "password");
    if (const auto encoded = text_of(entry, "auth"); !encoded.empty()) {
        const auto decoded = from_base64(encoded);
        const auto colon = decoded ? decoded->find(':') : std::string::npos;
        if (colon == std::string::npos)
            return bad_file(file, "the login for '" + key + "' is not valid base64");
        user = decoded->substr(0, colon);
        password = decoded->substr(colon + 1);
    }
    if (user.empty()) return std::nullopt;
    return RegistryLogin{.user = std::move(user), .password = std::move(password)};
}

Found ask_helper(const std::string& name, const std::string& registry, const Environment& environment,
                 const fs::path& file) {
    // It becomes part of a program's name.
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
        name.npos)
        return bad_file(file, "'" + name + "' is not a valid name of a credential helper");
    const std::string server = registry == "docker.io" ? "https://index.docker.io/v1/" : registry;
    const Fd question(memfd_create("registry", MFD_CLOEXEC));
    if (!question ||
        write(question.get(), server.data(), server.size()) != static_cast<ssize_t>(server.size()) ||
        lseek(question.get(), 0, SEEK_SET) != 0)
        return fail_errno("cannot run docker-credential-" + name);
    const int in = question.get();
    auto done =
        capture({.argv = {"docker-credential-" + name, "get"}, .environment = environment, .in_child = [in] {
                     return dup2(in, STDIN_FILENO) < 0 ? errno : 0;
                 }});
    if (!done) {
        log::warn("cannot run the credential helper docker-credential-" + name + " from " + file.string() +
                  ": " + done.error().why);
        return std::nullopt;
    }
    // The helper does not know this registry.
    if (!done->ok()) return std::nullopt;
    const auto answer = parse_json_quietly(done->output);
    auto user = text_of(answer, "Username");
    auto secret = text_of(answer, "Secret");
    if (user == "<token>")
        return fail({.what = "cannot log in to " + registry,
                     .why = "docker-credential-" + name + " has an identity token, which is not supported",
                     .where = file.string(),
                     .hint = "Log in with a user name and an access token."});
    if (user.empty()) return std::nullopt;
    return RegistryLogin{.user = std::move(user), .password = std::move(secret)};
}

Found find_in(const fs::path& file, const std::string& registry, const std::string& repository,
              const Environment& environment) {
    auto content = TRY(read_file(file, 1U << 20U));
    const auto root = parse_json_quietly(content);
    // The parser's message would quote secrets.
    if (!root.is_object()) return bad_file(file, "it is not valid JSON");
    const auto keys = keys_for(registry, repository);
    const auto helpers = object_of(root, "credHelpers");
    for (const auto& [key, helper] : helpers.items())
        if (helper.is_string() && plain_key(key) == registry)
            return ask_helper(helper.get<std::string>(), registry, environment, file);
    const auto logins = object_of(root, "auths");
    for (const auto& wanted : keys)
        for (const auto& [key, entry] : logins.items())
            if (plain_key(key) == wanted)
                if (auto login = login_of(entry, key, file); !login || *login) return login;
    if (const auto helper = text_of(root, "credsStore"); !helper.empty())
        return ask_helper(helper, registry, environment, file);
    return std::nullopt;
}

} // namespace

Found find_login(const std::string& registry, const std::string& repository, const Environment& environment) {
    std::error_code ignored;
    for (const auto& file : files(environment)) {
        if (!fs::is_regular_file(file, ignored)) continue;
        if (auto login = find_in(file, registry, repository, environment); !login || *login) return login;
    }
    return std::nullopt;
}

} // namespace containerize::base
