#include "http/proxy_login.h"

#include "core/url.h"
#include "core/variables.h"

#include <algorithm>
#include <array>
#include <span>

namespace containerize::http {

namespace {

/// A proxy may be given without "http://", and still have a password.
std::string proxy_without_credentials(const std::string& proxy) {
    return without_credentials(is_url(proxy) ? proxy : "http://" + proxy);
}

} // namespace

std::string proxy_for(std::string_view url, const Settings& settings) {
    const std::string scheme(url.substr(0, url.find(':')));
    auto host = url_host(url);
    host.resize(std::min(host.find(':'), host.size()));
    // requests, which conda uses, looks for the scheme with the host first.
    for (const auto& key : {scheme + "://" + host, scheme, "all://" + host, std::string("all")})
        if (const auto proxy = settings.proxies.find(key); proxy != settings.proxies.end())
            return proxy->second;
    // libcurl reads only the lower-case http_proxy.
    if (settings.proxies.empty() && scheme == "http" && variable("http_proxy").empty())
        return variable("HTTP_PROXY");
    return {};
}

std::string proxy_name(std::string_view url, const Settings& settings) {
    if (auto proxy = proxy_for(url, settings); !proxy.empty()) return proxy_without_credentials(proxy);
    static constexpr std::array<Variable, 4> with_tls = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                                         "ALL_PROXY"};
    static constexpr std::array<Variable, 3> plain = {"http_proxy", "all_proxy", "ALL_PROXY"};
    for (const auto name : url.starts_with("https:") ? std::span<const Variable>(with_tls) : plain)
        if (auto proxy = variable(name); !proxy.empty()) return proxy_without_credentials(proxy);
    return {};
}

const Login* login_for(std::string_view url, const Settings& settings) {
    const Login* best = nullptr;
    // Credentials in the URL itself take precedence.
    if (const auto mark = url.find("://"); mark == url.npos || url_login_size(url.substr(mark + 3)) > 0)
        return nullptr;
    const auto asked = without_credentials(url);
    const auto is_better = [](const Login& login, const Login& other) {
        const bool is_exact = !login.url.starts_with('*');
        if (is_exact != !other.url.starts_with('*')) return is_exact;
        return login.url.size() > other.url.size();
    };
    for (const auto& login : settings.logins)
        if (is_place_of(login.url, asked) && (best == nullptr || is_better(login, *best))) best = &login;
    return best;
}

} // namespace containerize::http
