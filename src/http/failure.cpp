#include "http/failure.h"

#include "core/filesystem.h"
#include "core/variables.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace containerize::http {

namespace {

Error failure(const Attempt& attempt, std::string why, std::string hint = {}) {
    if (!attempt.redirected_to.empty()) why += fmt::format(" (redirected to {})", attempt.redirected_to);
    return {.what = "cannot download", .why = std::move(why), .where = attempt.url, .hint = std::move(hint)};
}

std::string login_advice(const Attempt& attempt) {
    return fmt::format("Check the login for {}: {}", attempt.host, attempt.settings->advice.login);
}

std::string network_advice(const Attempt& attempt) {
    const auto& place = attempt.settings->advice.proxy;
    if (!attempt.proxy.empty()) return fmt::format("The proxy is {} (from {}).", attempt.proxy, place);
    return fmt::format(
        "Check the address, and whether this machine can reach it. Compute nodes often have no "
        "internet access, but login nodes do.\nBehind a proxy, set {}.",
        place);
}

std::string tls_advice(const Settings& settings) {
    const auto used = certificates(settings);
    return fmt::format("Certificates are read from {}. If your site has its own certificate authority, set "
                       "its file with\n{}.",
                       used.empty() ? "the system's store" : used.string(), settings.advice.certificates);
}

std::string_view reason_of(long status) {
    static constexpr auto reasons =
        std::to_array<std::pair<long, std::string_view>>({{400, "Bad Request"},
                                                          {408, "Request Timeout"},
                                                          {410, "Gone"},
                                                          {429, "Too Many Requests"},
                                                          {500, "Internal Server Error"},
                                                          {502, "Bad Gateway"},
                                                          {503, "Service Unavailable"},
                                                          {504, "Gateway Timeout"}});
    for (const auto& [number, reason] : reasons)
        if (number == status) return reason;
    return {};
}

/// Whether the rest of another answer was left on the connection.
bool is_no_http(const Attempt& attempt) {
    return attempt.message.find("HTTP/0.9") != std::string::npos;
}

} // namespace

std::filesystem::path certificates(const Settings& settings) {
    if (!settings.ca.empty()) return settings.ca;
    std::error_code ignored;
    // The first two are set by users of conda and pip.
    for (const auto name :
         VariableList{"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"})
        if (const fs::path path = variable(name); !path.empty() && fs::exists(path, ignored)) return path;
    // A libcurl that was built elsewhere looks where that distribution keeps them.
    constexpr std::array places = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                   "/etc/ssl/ca-bundle.pem",
                                   "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"};
    for (const char* place : places)
        if (fs::exists(place, ignored)) return place;
    return {};
}

bool status_may_pass(long status) {
    return status == 408 || status == 425 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

bool code_may_pass(CURLcode code, const Attempt& attempt) {
    if (attempt.proxy_status >= 400) return status_may_pass(attempt.proxy_status);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    case CURLE_UNSUPPORTED_PROTOCOL:
        return is_no_http(attempt);
    default:
        return false;
    }
}

Error explain_status(long status, const Attempt& attempt) {
    switch (status) {
    case 206:
        return failure(attempt, "the server sent a different part of the file than requested");
    case 401:
        return failure(attempt, "the server requires a login (401 Unauthorized)", login_advice(attempt));
    case 403:
        return failure(attempt, "the server refuses access (403 Forbidden)", login_advice(attempt));
    case 404:
        return failure(attempt, "the server does not have this file (404 Not Found)",
                       fmt::format("Check {}.", attempt.settings->advice.address));
    case 407:
        return failure(attempt, "the proxy requires a login (407 Proxy Authentication Required)",
                       fmt::format("The proxy is {}. Write it as http://USER:PASSWORD@HOST:PORT in {}.",
                                   attempt.proxy, attempt.settings->advice.proxy));
    default:
        break;
    }
    const auto reason = reason_of(status);
    return failure(
        attempt, fmt::format("the server answered {}{}{}", status, reason.empty() ? "" : " ", reason),
        status == 429 ? "It limits the requests from one address. Try again later." : std::string());
}

Error explain_code(CURLcode code, const Attempt& attempt) {
    if (attempt.proxy_status >= 400) {
        if (attempt.proxy_status == 407) return explain_status(407, attempt);
        return failure(attempt,
                       fmt::format("the proxy refused the connection (it answered {})", attempt.proxy_status),
                       network_advice(attempt));
    }
    const auto& advice = attempt.settings->advice;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        // libcurl says this also of a proxy's name if the resolver fails at once. Behind an HTTP proxy, it
        // resolves no other name.
        if (attempt.proxy.starts_with("http")) return explain_code(CURLE_COULDNT_RESOLVE_PROXY, attempt);
        return failure(attempt, fmt::format("the name {} cannot be resolved", attempt.host),
                       network_advice(attempt));
    case CURLE_COULDNT_RESOLVE_PROXY:
        return failure(attempt, "the proxy's name cannot be resolved", network_advice(attempt));
    case CURLE_COULDNT_CONNECT:
        return failure(attempt, fmt::format("connection failed: {}", attempt.message),
                       network_advice(attempt));
    case CURLE_OPERATION_TIMEDOUT:
        if (attempt.connect_time == 0)
            return failure(
                attempt,
                fmt::format("no connection within {:.0f} s",
                            std::chrono::duration<double>(attempt.settings->connect_timeout).count()),
                network_advice(attempt));
        return failure(
            attempt, fmt::format("no data arrived for {} s", attempt.settings->stall_timeout.count()),
            "The server or the network is very slow." +
                (advice.patience.empty() ? "" : " Set a longer time with " + advice.patience + "."));
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return failure(attempt, fmt::format("the connection broke: {}", attempt.message));
    case CURLE_SSL_CONNECT_ERROR:
        return failure(attempt, fmt::format("encrypted connection failed: {}", attempt.message),
                       network_advice(attempt));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return failure(attempt, fmt::format("the server's identity cannot be verified: {}", attempt.message),
                       tls_advice(*attempt.settings));
    case CURLE_SSL_CERTPROBLEM:
        return failure(attempt, fmt::format("the client certificate cannot be used: {}", attempt.message),
                       fmt::format("Check {}.", advice.client_certificate));
    case CURLE_FILE_COULDNT_READ_FILE:
        return failure(attempt, "the file does not exist or cannot be read");
    case CURLE_TOO_MANY_REDIRECTS:
        return failure(attempt, "too many redirects");
    case CURLE_WEIRD_SERVER_REPLY:
        return failure(attempt, "the server's answer is not HTTP");
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (is_no_http(attempt)) return failure(attempt, "the server's answer is not HTTP");
        return failure(
            attempt,
            "the URL is not an http, https or file URL, or an https URL redirects to an unencrypted one");
    default:
        break;
    }
    return failure(attempt, attempt.message.empty() ? curl_easy_strerror(code) : attempt.message);
}

} // namespace containerize::http
