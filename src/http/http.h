// Downloads: many in parallel from one thread, each retried, resumed, and verified while data arrives.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace containerize::http {

/// Credentials for a server. Sent only to URLs below `url`, and nowhere else after a redirect.
struct Login {
    std::string url;                      ///< "https://host/path", or "host"; no '/' at the end
    std::string user = {}, password = {}; ///< basic authentication, or
    std::string bearer = {};              ///< `Authorization: Bearer ...`, or
    /// "aws:amz:REGION:s3": requests are signed with `password`, which is not sent, in the name of `user`
    std::string signature = {};
    std::string session = {}; ///< the token of temporary credentials for that; may be empty
};

/// What the user of some settings can do about a failure, in the words of where they come from.
struct Advice {
    std::string address = "the address";        ///< "Check ...": there is no such file
    std::string login = "~/.netrc.";            ///< "Check the login for HOST: ..."
    std::string proxy = "https_proxy";          ///< where it is set
    std::string certificates = "SSL_CERT_FILE"; ///< what names an authority's file
    std::string client_certificate;             ///< what names its files
    std::string checksums = "their checksums";  ///< what does not fit a file with another content
    std::string patience;                       ///< what allows a slow server more time
    std::string no_verification;                ///< the setting that makes servers unverified
};

/// How servers are reached.
struct Settings {
    /// By "https", "https://host" or "all", as in conda's proxy_servers. If empty, libcurl reads http_proxy,
    /// https_proxy, all_proxy and no_proxy from the environment.
    std::map<std::string, std::string> proxies;
    bool verify_tls = true;
    std::filesystem::path ca; ///< file or directory of certificates; empty: see certificates()
    std::filesystem::path client_certificate, client_key;
    std::vector<Login> logins; ///< the longest matching `url` is used; ~/.netrc (or $NETRC) is read as well
    std::chrono::milliseconds connect_timeout{15'000};
    std::chrono::seconds stall_timeout{60}; ///< without receiving a byte; there is no total limit
    unsigned retries = 4; ///< after failures that may be temporary, in addition to the first try
    std::chrono::milliseconds first_pause{500}; ///< before the first retry; doubled each time, with jitter
    unsigned parallel = 8;                      ///< concurrent transfers
    Advice advice;
};

struct Request {
    std::vector<std::string> urls;    ///< mirrors, tried in turn; http, https, file; may hold credentials
    std::vector<std::string> headers; ///< "Accept: application/json"
    /// Where the body goes; empty: into Response::body. If a digest is expected, existing content is taken
    /// for the beginning of the body; otherwise it is overwritten. A failed download stays for the next try.
    /// The caller renames it.
    std::filesystem::path file;
    std::uint64_t limit = 0;         ///< most bytes of a body; 0: no limit for a file, 64 MiB in memory
    std::uint64_t size = 0;          ///< expected, in bytes; 0: unknown
    std::string sha256, md5;         ///< expected, lower-case hex; empty: unknown
    std::string etag, last_modified; ///< of the caller's copy: then 304 is an answer
    std::vector<long> answers;       ///< statuses that are answers, not failures, on the last mirror: {404}
    /// A server, not the user, has named the URL. Then, as after a redirect, link-local addresses are
    /// refused, where clouds reveal a machine's secrets.
    bool named_by_server = false;
    bool compress = false; ///< let the server compress the transfer, which then cannot be resumed
};

struct Response {
    long status = 0; ///< 200, 304, or one of Request::answers; 200 for file://
    std::string url; ///< the one of Request::urls that answered, without credentials
    std::map<std::string, std::string> headers; ///< the last ones; lower case, repeated values joined
    std::string body;                           ///< if it went to memory
    std::shared_ptr<const Fd> file;             ///< otherwise where it went, open for reading and writing
    std::uint64_t size = 0;                     ///< of the body
    std::string sha256;                         ///< of the body
};

struct Progress {
    std::uint64_t done = 0, total = 0; ///< bytes of all requests; total grows as sizes become known
    double rate = 0;                   ///< bytes per second, over the last few seconds
};

struct Observer {
    std::function<void(const Progress&)> progress = {}; ///< several times a second
    std::function<bool()> cancelled =
        {}; ///< asked several times a second, from the calling thread; true ends all
    /// Called when each request ends, successfully or not. An error replaces the result and ends all others.
    std::function<Status(std::size_t index, const Result<Response>& result)> finished = {};
    /// Asked after each `finished` for requests that follow from it. They use the same connections.
    std::function<std::vector<Request>()> more = {};
};

/// Fetches all in parallel; returns when each has succeeded or finally failed, in the order of `requests`,
/// which those of Observer::more follow. An interrupt (core/interrupt.h) ends all at once. No error, log line
/// or response contains credentials.
std::vector<Result<Response>> fetch(const std::vector<Request>& requests, const Settings& settings,
                                    const Observer& observer = {});

/// Fetches one.
Result<Response> fetch(const Request& request, const Settings& settings);

} // namespace containerize::http
