#include "base/registry.h"

#include "base/challenge.h"
#include "base/registry_logins.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/url.h"
#include "util/log.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>

#include <fmt/format.h>

namespace containerize::base {

namespace {

constexpr const char* accepted =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::uint64_t largest_token = 1U << 20U;
/// The ending of a layer's name while it is read and its space is freed.
constexpr const char* being_read = ".read";

bool is_this_machine(std::string_view registry) {
    const auto host = registry.starts_with('[') ? registry.substr(0, registry.find(']') + 1)
                                                : registry.substr(0, registry.find(':'));
    const bool is_number = host.find_first_not_of("0123456789.") == host.npos;
    return host == "localhost" || host == "[::1]" || (is_number && host.starts_with("127."));
}

} // namespace

std::vector<std::string> registry_addresses(const std::string& registry,
                                            const std::vector<RegistryUrl>& urls) {
    std::vector<std::string> addresses;
    bool has_own = false;
    for (const auto& one : urls) {
        if (one.registry != registry) continue;
        addresses.push_back(one.url);
        has_own = has_own || url_host(one.url) == registry;
    }
    if (has_own) return addresses;
    const auto host = registry == "docker.io" ? "registry-1.docker.io" : registry;
    addresses.push_back((is_this_machine(registry) ? "http://" : "https://") + host);
    return addresses;
}

struct Registry::State {
    State(Reference which, RegistrySettings how)
        : reference(std::move(which)), settings(std::move(how)),
          addresses(registry_addresses(reference.registry, settings.urls)) {}

    Reference reference;
    RegistrySettings settings;
    fs::path downloads;
    std::vector<std::string> addresses;
    std::mutex mutex; ///< for `logins`: two threads may ask
    std::vector<http::Login> logins;

    std::uint64_t fetched = 0;
    std::atomic<bool> given_up{false};
    std::string fetching; ///< the digest of the layer that `next` downloads
    std::future<Result<fs::path>> next;
    fs::path in_use;

    [[nodiscard]] std::string repository_url(const std::string& address) const {
        return address + "/v2/" + reference.repository;
    }

    [[nodiscard]] Error refused(const http::Response& response) const {
        if (response.status == 404)
            return fail_input("there is no such image", "the registry does not know it", reference.text,
                              "Check the name and the tag.")
                .error();
        return {.what = "the registry refused the image",
                .why = response.status == 403 ? "access is forbidden (403)"
                                              : "it requires a login (401), or there is no such image",
                .where = reference.text,
                .hint = fmt::format(
                    "Check the name. Logins are read from ~/.docker/config.json, "
                    "~/.apptainer/docker-config.json and\nthe file in REGISTRY_AUTH_FILE. `docker "
                    "login {0}`, `podman login {0}` and `apptainer registry login` create them.",
                    reference.registry)};
    }

    Result<std::string> token(const std::string& address, const Challenge& challenge,
                              const std::optional<RegistryLogin>& login) const {
        const auto parameter = [&challenge](const char* name) {
            const auto found = challenge.parameters.find(name);
            return found == challenge.parameters.end() ? "" : found->second;
        };
        const auto realm = parameter("realm");
        const auto refuse = [&](std::string why) {
            return fail({.what = "cannot log in to the registry",
                         .why = std::move(why),
                         .where = reference.registry,
                         .hint = "Ask the operators of the registry."});
        };
        // The token server gets the password, and its answer gives access to the registry.
        const bool encrypted = realm.starts_with("https://");
        if (!encrypted && !(realm.starts_with("http://") && address.starts_with("http://")))
            return refuse("its token server '" + without_credentials(realm) + "' does not use encryption");
        http::Request request;
        request.urls = {fmt::format("{}{}service={}&scope={}", realm,
                                    realm.find('?') == realm.npos ? '?' : '&',
                                    percent_encoded(parameter("service")),
                                    percent_encoded("repository:" + reference.repository + ":pull"))};
        request.limit = largest_token;
        request.named_by_server = true;
        request.answers = {401, 403};
        auto how = settings.http;
        if (login) how.logins = {{.url = url_host(realm), .user = login->user, .password = login->password}};
        auto answer = TRY(http::fetch(request, how));
        if (answer.status != 200) return fail(refused(answer));
        if (auto token = parse_token(answer.body)) return std::move(*token);
        return refuse(without_credentials(realm) + " returned no token");
    }

    Status log_in(const std::string& address, const std::string& challenge) {
        // A mirror has its own logins.
        const auto host = url_host(address);
        const auto name = host == "registry-1.docker.io" ? "docker.io" : host;
        auto login = TRY(find_login(name, reference.repository, settings.environment));
        http::Login made{.url = repository_url(address)};
        const auto challenges = parse_challenges(challenge);
        const auto bearer = std::ranges::find(challenges, "bearer", &Challenge::scheme);
        if (bearer != challenges.end()) {
            made.bearer = TRY(token(address, *bearer, login));
        } else if (login) {
            made.user = login->user;
            made.password = login->password;
        } else {
            return {};
        }
        std::erase_if(logins, [&](const auto& old) { return old.url == made.url; });
        logins.push_back(std::move(made));
        return {};
    }

    Result<http::Response> get_from(const std::string& address, const std::string& path,
                                    http::Request request, const http::Observer& observer) {
        request.urls = {repository_url(address) + path};
        request.answers = {401, 403, 404};
        Result<http::Response> answer;
        // Tokens expire after minutes: an image's last layer may need another one than its first.
        for (const bool first : {true, false}) {
            auto how = settings.http;
            {
                const std::lock_guard lock(mutex);
                how.logins = logins;
            }
            answer = std::move(http::fetch(std::vector{request}, how, observer).front());
            if (!answer || answer->status != 401 || !first) break;
            const std::lock_guard lock(mutex);
            TRY(log_in(address, answer->headers["www-authenticate"]));
        }
        if (answer && answer->status != 200) return fail(refused(*answer));
        return answer;
    }

    Result<http::Response> get(const std::string& path, const http::Request& request,
                               const http::Observer& observer = {}) {
        Result<http::Response> answer;
        for (const auto& address : addresses) {
            answer = get_from(address, path, request, observer);
            if (answer) return answer;
            if (&address != &addresses.back()) log::detail("the mirror failed: " + to_string(answer.error()));
        }
        return answer;
    }

    Result<fs::path> download(const Descriptor& layer) {
        const auto digits = layer.digest.substr(layer.digest.find(':') + 1);
        auto file = downloads / digits;
        http::Request request;
        request.file = file;
        request.size = layer.size;
        request.sha256 = digits;
        const auto before = fetched;
        const http::Observer observer{
            .progress = [&](const http::Progress& now) { settings.progress(before + now.done, now.rate); },
            .cancelled = [this] { return given_up.load(); }};
        auto answer = get("/blobs/" + layer.digest, request, observer);
        if (!answer) {
            answer.error().what = "cannot pull a layer of " + reference.text;
            return fail(std::move(answer.error()));
        }
        fetched += layer.size;
        return file;
    }
};

Registry::Registry(Reference reference, RegistrySettings settings)
    : state_(std::make_unique<State>(std::move(reference), std::move(settings))) {}

void Registry::download_to(fs::path directory) {
    state_->downloads = std::move(directory);
    std::error_code ignored;
    for (const auto& file : entries_in(state_->downloads, ignored))
        if (file.path().extension() == being_read) fs::remove(file.path(), ignored);
}

Registry::~Registry() {
    state_->given_up = true;
    if (state_->next.valid()) state_->next.wait();
}

Result<ImageInfo> Registry::info() {
    auto& state = *state_;
    const auto fetch = [&](const std::string& path, std::uint64_t limit) {
        http::Request request;
        request.headers = {accepted};
        request.limit = limit;
        return state.get(path, request);
    };
    const auto& reference = state.reference;
    auto root = TRY(fetch("/manifests/" + (reference.digest.empty() ? reference.tag : reference.digest),
                          largest_manifest));
    const auto digest = "sha256:" + root.sha256;
    if (!reference.digest.empty() && digest != reference.digest)
        return fail({.what = "the registry returned a different image",
                     .why = "the digest is " + digest,
                     .where = reference.text,
                     .hint = "Try again. If the error remains, do not use the registry."});
    return read_image(root.body, digest, {}, reference.text,
                      [&](const Descriptor& descriptor, std::uint64_t limit) -> Result<std::string> {
                          const bool is_config = limit == largest_config;
                          auto text =
                              fetch((is_config ? "/blobs/" : "/manifests/") + descriptor.digest, limit);
                          if (!text) return fail(std::move(text.error()));
                          return std::move(text->body);
                      });
}

Result<ReadMore> Registry::open(const Descriptor& layer, const Descriptor* next) {
    auto& state = *state_;
    std::error_code ignored;
    if (!state.in_use.empty()) fs::remove(state.in_use, ignored);
    const bool is_coming = state.next.valid() && state.fetching == layer.digest;
    // A layer that is opened again is downloaded again, after the next one, which is being downloaded
    // already.
    if (!is_coming && state.next.valid()) state.next.wait();
    auto file = TRY(is_coming ? state.next.get() : state.download(layer));
    // Renamed, because after an interrupt what is left of it must not be continued as a download.
    state.in_use = file.string() + being_read;
    fs::rename(file, state.in_use, ignored);
    if (ignored) return fail_errno("cannot rename a layer", file.string(), ignored.value());
    if (next != nullptr && next->digest != layer.digest && !state.next.valid()) {
        state.fetching = next->digest;
        state.next = std::async(std::launch::async,
                                [&state, descriptor = *next] { return state.download(descriptor); });
    }
    return consume_pieces(state.in_use);
}

} // namespace containerize::base
