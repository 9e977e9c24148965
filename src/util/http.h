// Downloads: many at once from one thread, each retried, resumed, and verified while it comes in.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::http {

/// What proves who we are to a server. Sent to URLs below `url` and to nobody else, redirects included.
struct Login {
    std::string url;            ///< "https://host/path", or "host"; no '/' at the end
    std::string user, password; ///< basic authentication, or
    std::string bearer;         ///< `Authorization: Bearer ...`
};

/// How servers are reached.
struct Settings {
    /// As conda's proxy_servers: by "https", "https://host", "all". Empty: the environment's http_proxy,
    /// https_proxy, all_proxy and no_proxy, which libcurl reads.
    std::map<std::string, std::string> proxies;
    bool verify_tls = true;
    std::filesystem::path ca; ///< file or directory of certificates; empty: SSL_CERT_FILE, SSL_CERT_DIR, else
                              ///< the system's, wherever this distribution has them
    std::filesystem::path client_certificate, client_key;
    std::vector<Login> logins; ///< the longest `url` that fits is used; ~/.netrc (or $NETRC) is read as well
    std::chrono::milliseconds connect_timeout{15'000};
    std::chrono::seconds stall_timeout{
        60};              ///< without one byte for so long: broken. There is no total limit.
    unsigned retries = 4; ///< of what may pass: so many times after the first
    std::chrono::milliseconds first_pause{500}; ///< before the first retry; doubled each time, with jitter
    unsigned parallel = 8;                      ///< transfers at once
};

struct Request {
    std::vector<std::string> urls;    ///< mirrors, tried in turn; http, https, file; may hold credentials
    std::vector<std::string> headers; ///< "Accept: application/json"
    /// Where the body goes; empty: into Response::body. What this file holds already is taken for the
    /// beginning of the body where a digest is expected; otherwise it is overwritten. A failed download
    /// leaves what it has, for the next try. The caller renames it.
    std::filesystem::path file;
    std::uint64_t limit = 0;         ///< bytes; more is an error; 0: none, for files alone
    std::uint64_t size = 0;          ///< expected; 0: not known
    std::string sha256, md5;         ///< expected, lower-case hex; empty: not known
    std::string etag, last_modified; ///< of the copy that the caller has: then 304 is an answer
    std::vector<long> answers;       ///< statuses that are answers, not failures, on the last mirror: {404}
    bool named_by_server = false;    ///< the URL, not by the user: then, as after a redirect, no link-local
                                     ///< address is asked, where clouds tell a machine's secrets
    bool compress = false; ///< let the server compress on the way; such a transfer cannot be resumed
};

struct Response {
    long status = 0; ///< 200, 304, or one of Request::answers; 200 for file://
    std::string url; ///< the one of Request::urls that answered, without credentials
    std::map<std::string, std::string> headers; ///< of the last answer, names in lower case; what comes
                                                ///< several times is joined by ", "
    std::string body;                           ///< if it was to go to memory
    std::shared_ptr<const Fd> file;             ///< else what it went to, open for reading and writing
    std::uint64_t size = 0;                     ///< of the body
    std::string sha256;                         ///< of the body
};

struct Progress {
    std::uint64_t done = 0, total = 0; ///< bytes of all requests; total grows as sizes become known
    double rate = 0;                   ///< bytes in a second, of the last seconds
};

struct Observer {
    std::function<void(const Progress&)> progress; ///< several times a second
    std::function<bool()> cancelled; ///< asked several times a second, from the calling thread; true ends all
    /// As each request ends, well or not. An error takes the result's place, and ends all others.
    std::function<Status(std::size_t index, const Result<Response>& result)> finished;
};

/// Fetches all, in parallel; returns when each has succeeded or failed for good, in the order of `requests`.
/// An interrupt (util/interrupt.h) ends it at once. No error, log line or response holds a credential.
std::vector<Result<Response>> fetch(const std::vector<Request>& requests, const Settings& settings,
                                    const Observer& observer = {});

/// One request.
Result<Response> fetch(const Request& request, const Settings& settings);

} // namespace containerize::http
