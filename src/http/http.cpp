#include "http/http.h"

#include "core/fd.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "core/text.h"
#include "core/url.h"
#include "core/variables.h"
#include "http/failure.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/progress.h"
#include "util/redact.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <system_error>

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace containerize::http {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto longest_pause = std::chrono::seconds(120);
constexpr auto tick = milliseconds(200);
/// A broken transfer that got this much further than any before starts the count of retries anew.
constexpr std::uint64_t worthwhile = 64U << 10U;
constexpr std::uint64_t memory_limit = 64U << 20U;
constexpr std::size_t header_limit = 256U << 10U;

struct FreeEasy {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Multi = std::unique_ptr<CURLM, FreeMulti>;
using List = std::unique_ptr<curl_slist, FreeList>;

/// The proxy in the settings. requests, which conda uses, looks for the scheme with the host first.
std::string proxy_for(std::string_view url, const Settings& settings) {
    const std::string scheme(url.substr(0, url.find(':')));
    auto host = url_host(url);
    host.resize(std::min(host.find(':'), host.size()));
    for (const auto& key : {scheme + "://" + host, scheme, "all://" + host, std::string("all")})
        if (const auto proxy = settings.proxies.find(key); proxy != settings.proxies.end())
            return proxy->second;
    // libcurl reads only the lower-case http_proxy.
    if (settings.proxies.empty() && scheme == "http" && variable("http_proxy").empty())
        return variable("HTTP_PROXY");
    return {};
}

/// A proxy may be given without "http://", and still have a password.
std::string proxy_without_credentials(const std::string& proxy) {
    return without_credentials(is_url(proxy) ? proxy : "http://" + proxy);
}

/// The proxy that will be used, as shown in messages.
std::string proxy_name(std::string_view url, const Settings& settings) {
    if (auto proxy = proxy_for(url, settings); !proxy.empty()) return proxy_without_credentials(proxy);
    const auto names = url.starts_with("https:") ? std::array{"https_proxy", "HTTPS_PROXY"}
                                                 : std::array{"http_proxy", "http_proxy"};
    for (const char* name : {names[0], names[1], "all_proxy", "ALL_PROXY"})
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

void append(List& list, const std::string& header) {
    if (curl_slist* longer = curl_slist_append(list.get(), header.c_str())) {
        [[maybe_unused]] const auto* same = list.release();
        list.reset(longer);
    }
}

/// 169.254.0.0/16, also within IPv6, and fe80::/10.
bool is_link_local(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        const auto& ip = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
        return ntohl(ip.s_addr) >> 16U == 0xA9FE;
    }
    if (address.sa_family != AF_INET6) return false;
    const auto& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return IN6_IS_ADDR_LINKLOCAL(&ip) ||
           (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == 169 && ip.s6_addr[13] == 254);
}

/// One request with all its tries.
class Transfer {
public:
    enum class Next { done, again };

    Transfer(const Request& request, const Settings& settings)
        : request_(request), settings_(settings), failures_(request.urls.size()) {}
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// Returns the handle for the next try; null if there is nothing (more) to ask, with the result set.
    CURL* start() {
        if (!opened_) {
            opened_ = true;
            if (auto ready = open_file(); !ready) return finish(fail(std::move(ready.error())));
            if (request_.size > 0 && received_ == request_.size) {
                if (complete()) return nullptr;
                restart();
            }
        }
        easy_.reset(curl_easy_init());
        if (!easy_) return finish(fail({.what = "cannot start libcurl", .why = {}, .where = {}, .hint = {}}));
        prepare();
        return easy_.get();
    }

    /// Evaluates a try that has ended.
    Next settle(CURLcode code) {
        const auto next = judge(code);
        easy_.reset();
        list_.reset();
        return next;
    }

    [[nodiscard]] bool finished() const { return result_.has_value(); }
    [[nodiscard]] const Result<Response>& result() const { return *result_; }
    Result<Response> take() { return std::move(*result_); }
    void give_up(const Error& error) {
        easy_.reset();
        result_ = fail(Error(error));
    }
    [[nodiscard]] Clock::time_point not_before() const { return not_before_; }
    [[nodiscard]] std::uint64_t received() const { return received_; }
    [[nodiscard]] std::uint64_t expected() const { return std::max(expected_, request_.size); }
    [[nodiscard]] CURL* handle() const { return easy_.get(); }

private:
    [[nodiscard]] const std::string& url() const { return request_.urls[mirror_]; }
    [[nodiscard]] bool is_file() const { return url().starts_with("file:"); }
    [[nodiscard]] std::string shown() const { return without_credentials(url()); }
    [[nodiscard]] bool has_digest() const { return !request_.sha256.empty() || !request_.md5.empty(); }

    CURL* finish(Result<Response> result) {
        result_ = std::move(result);
        return nullptr;
    }
    Next end(Result<Response> result) {
        result_ = std::move(result);
        return Next::done;
    }

    // --- where the body goes

    Status open_file() {
        if (request_.file.empty()) return {};
        const auto refuse = [this](std::string why) {
            return fail({.what = "cannot write the download",
                         .why = std::move(why),
                         .where = request_.file.string(),
                         .hint = {}});
        };
        struct stat info {};
        for (const bool first : {true, false}) {
            file_ = Fd(open(request_.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
            if (!file_) return fail_errno("cannot write the download", request_.file.string());
            if (fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) return refuse("it is not a file");
            if (is_ours_alone(info)) break;
            // Whoever can write to the file could change what was verified.
            if (!first || unlink(request_.file.c_str()) != 0) return refuse("other users can change it");
        }
        const auto present = static_cast<std::uint64_t>(info.st_size);
        const bool useful =
            has_digest() && !request_.compress && (request_.size == 0 || present <= request_.size);
        if (!useful || present == 0 || !take_in(present)) restart();
        old_bytes_ = received_;
        if (received_ > 0)
            log::detail(fmt::format("{}: {} are there already", shown(), human_bytes(received_)));
        return {};
    }

    /// Digests what an earlier run left in the file; returns false if that cannot be read.
    bool take_in(std::uint64_t present) {
        std::vector<char> buffer(std::size_t{1} << 20U);
        while (received_ < present) {
            const auto got =
                read_all_at(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(received_));
            if (got <= 0) return false;
            count(buffer.data(), static_cast<std::size_t>(got));
        }
        return true;
    }

    void count(const char* data, std::size_t size) {
        sha256_.update(data, size);
        if (!request_.md5.empty()) md5_.update(data, size);
        received_ += size;
    }

    /// Discards what was received.
    void restart() {
        if (file_ && ftruncate(file_.get(), 0) != 0) failure_ = write_failure();
        body_.clear();
        sha256_ = Sha256();
        md5_ = Md5();
        received_ = 0;
        old_bytes_ = 0;
        validator_.clear();
    }

    [[nodiscard]] Error write_failure() const {
        return fail_errno("cannot write the download", request_.file.string()).error();
    }

    bool store(const char* data, std::size_t size) {
        if (request_.file.empty()) {
            body_.append(data, size);
        } else if (!write_all_at(file_.get(), {data, size}, static_cast<off_t>(received_))) {
            failure_ = write_failure();
            return false;
        }
        count(data, size);
        return true;
    }

    // --- one try

    template<class T>
    void set(CURLoption option, T value) {
        curl_easy_setopt(easy_.get(), option, value);
    }

    void prepare() {
        headers_.clear();
        header_bytes_ = 0;
        body_begun_ = ignore_body_ = redirected_ = false;
        failure_.reset();
        message_[0] = '\0';
        // A partial body may be continued only if both parts are certain to be of the same version.
        if (received_ > 0 && (is_file() || request_.compress || (validator_.empty() && !has_digest())))
            restart();
        offset_ = received_;
        asked_ = url_encoded(url());
        set(CURLOPT_URL, asked_.c_str());
        set(CURLOPT_PROTOCOLS_STR, "http,https,file");
        set(CURLOPT_ERRORBUFFER, message_.data());
        set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
        set(CURLOPT_WRITEDATA, this);
        set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
        set(CURLOPT_HEADERDATA, this);
        set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::on_socket);
        set(CURLOPT_OPENSOCKETDATA, this);
        set(CURLOPT_USERAGENT, "containerize/" CONTAINERIZE_VERSION);
        set(CURLOPT_FOLLOWLOCATION, 1L);
        set(CURLOPT_MAXREDIRS, 10L);
        // An encrypted URL must not redirect to one that anybody on the way can change.
        set(CURLOPT_REDIR_PROTOCOLS_STR, asked_.starts_with("https:") ? "https" : "http,https");
        set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect_timeout.count()));
        set(CURLOPT_LOW_SPEED_LIMIT, 1L);
        set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.stall_timeout.count()));
        set(CURLOPT_TCP_KEEPALIVE, 1L);
        // Data left on a connection that failed would be taken for the next answer.
        if (std::exchange(tried_, true)) set(CURLOPT_FRESH_CONNECT, 1L);
        if (request_.compress) set(CURLOPT_ACCEPT_ENCODING, "");
        prepare_security();
        prepare_headers();
    }

    void prepare_security() {
        if (const auto proxy = proxy_for(asked_, settings_); !proxy.empty())
            set(CURLOPT_PROXY, proxy.c_str());
        if (!settings_.verify_tls) {
            set(CURLOPT_SSL_VERIFYPEER, 0L);
            set(CURLOPT_SSL_VERIFYHOST, 0L);
        } else if (const auto found = certificates(settings_); !found.empty()) {
            std::error_code ignored;
            const bool directory = fs::is_directory(found, ignored);
            set(directory ? CURLOPT_CAPATH : CURLOPT_CAINFO, found.c_str());
            if (directory) set<const char*>(CURLOPT_CAINFO, nullptr);
        }
        if (!settings_.client_certificate.empty()) set(CURLOPT_SSLCERT, settings_.client_certificate.c_str());
        if (!settings_.client_key.empty()) set(CURLOPT_SSLKEY, settings_.client_key.c_str());
        set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
        if (const auto netrc = variable("NETRC"); !netrc.empty()) set(CURLOPT_NETRC_FILE, netrc.c_str());
    }

    void prepare_headers() {
        for (const auto& header : request_.headers)
            append(list_, header);
        if (!request_.etag.empty()) append(list_, "If-None-Match: " + request_.etag);
        if (!request_.last_modified.empty()) append(list_, "If-Modified-Since: " + request_.last_modified);
        if (offset_ > 0) {
            set(CURLOPT_RANGE, (std::to_string(offset_) + "-").c_str());
            if (!validator_.empty()) append(list_, "If-Range: " + validator_);
        }
        if (const auto* login = login_for(asked_, settings_); login != nullptr) {
            // libcurl sends neither of them to another host after a redirect.
            if (!login->bearer.empty()) {
                append(list_, "Authorization: Bearer " + login->bearer);
            } else {
                set(CURLOPT_USERNAME, login->user.c_str());
                set(CURLOPT_PASSWORD, login->password.c_str());
            }
        }
        set(CURLOPT_HTTPHEADER, list_.get());
    }

    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
        return static_cast<Transfer*>(self)->header({data, size * count}) ? size * count : 0;
    }
    static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address) {
        return static_cast<Transfer*>(self)->open_socket(*address);
    }
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
        return static_cast<Transfer*>(self)->body(data, size * count) ? size * count : 0;
    }

    curl_socket_t open_socket(const curl_sockaddr& address) {
        // Proxies have no such addresses, so this is a server, also where there is a proxy for other servers.
        if ((redirected_ || request_.named_by_server) && is_link_local(address.addr)) {
            failure_ = Error{
                .what = "cannot download",
                .why = "the server names a link-local address, where nothing public is",
                .where = shown(),
                .hint = "This may be an attempt to read what is not public. Ask whoever runs the server."};
            return CURL_SOCKET_BAD;
        }
        return socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
    }

    bool header(std::string_view line) {
        header_bytes_ += line.size();
        if (header_bytes_ > header_limit) return false;
        // Only the last of several answers (redirects, proxies) counts.
        if (line.starts_with("HTTP/")) headers_.clear();
        if (const auto colon = line.find(':'); colon != std::string_view::npos) {
            auto& value = headers_[lower(line.substr(0, colon))];
            if (!value.empty()) value += ", ";
            value += trimmed(line.substr(colon + 1));
            redirected_ = redirected_ || headers_.contains("location");
        }
        return true;
    }

    [[nodiscard]] std::string header_value(const std::string& name) const {
        const auto found = headers_.find(name);
        return found == headers_.end() ? "" : found->second;
    }

    [[nodiscard]] long status() const {
        long status = 0;
        curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
        return is_file() ? 200 : status;
    }

    /// Called before the first byte of a body; returns false to end the try.
    bool begin_body() {
        body_begun_ = true;
        const auto code = status();
        ignore_body_ = code != 200 && code != 206;
        if (ignore_body_) return true;
        if (code == 200 && offset_ > 0) {
            // The server does not resume, or has another version of the file by now.
            restart();
            if (failure_) return false;
        }
        if (code == 206 && !header_value("content-range").starts_with(fmt::format("bytes {}-", offset_))) {
            wrong_range_ = true;
            return false;
        }
        curl_off_t length = -1;
        curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length > 0 && !request_.compress) expected_ = received_ + static_cast<std::uint64_t>(length);
        // Only a strong ETag guarantees the same bytes.
        const auto etag = header_value("etag");
        validator_ = etag.starts_with('"') ? etag : "";
        return check_limit(expected_);
    }

    bool check_limit(std::uint64_t bytes) {
        const auto limit = request_.size > 0                              ? request_.size
                           : request_.limit > 0 || !request_.file.empty() ? request_.limit
                                                                          : memory_limit;
        if (limit == 0 || bytes <= limit) return true;
        if (request_.size > 0)
            too_long_ = true;
        else
            failure_ = Error{.what = "cannot download",
                             .why = fmt::format("it is larger than {}", human_bytes(limit)),
                             .where = shown(),
                             .hint = {}};
        return false;
    }

    bool body(const char* data, std::size_t size) {
        if (!body_begun_ && !begin_body()) return false;
        if (ignore_body_) return true;
        return check_limit(received_ + size) && store(data, size);
    }

    // --- the result of a try

    Next judge(CURLcode code) {
        if (code == CURLE_OK && !body_begun_ && !begin_body()) code = CURLE_WRITE_ERROR;
        if (failure_) return end(fail(std::move(*failure_)));
        if (std::exchange(wrong_range_, false)) {
            restart();
            return try_again(explain_status(206, attempt()), 0);
        }
        if (std::exchange(too_long_, false)) return mismatch("the file is larger than expected");
        const auto answered = status();
        if (code == CURLE_OK && (answered == 200 || answered == 206)) {
            if (complete()) return Next::done;
            return mismatch(difference());
        }
        if (code == CURLE_OK && answered == 304) return end(response(304));
        if (answered == 416 && received_ > 0) {
            restart();
            return Next::again;
        }
        if (code == CURLE_OK && std::ranges::find(request_.answers, answered) != request_.answers.end())
            answer_ = response(answered);
        return judge_failure(code, answered);
    }

    Next judge_failure(CURLcode code, long answered) {
        const auto failed = attempt();
        auto error = code == CURLE_OK ? explain_status(answered, failed) : explain_code(code, failed);
        const bool may_pass = code == CURLE_OK ? status_may_pass(answered) : code_may_pass(code, failed);
        if (!may_pass) return next_mirror(std::move(error));
        curl_off_t wait = 0;
        curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &wait);
        return try_again(std::move(error), code == CURLE_OK ? wait : 0);
    }

    [[nodiscard]] Attempt attempt() const {
        Attempt attempt;
        attempt.url = shown();
        attempt.host = url_host(url());
        attempt.proxy = proxy_name(asked_, settings_);
        attempt.message = message_.data();
        attempt.redirected_to = redirected_to();
        curl_easy_getinfo(easy_.get(), CURLINFO_HTTP_CONNECTCODE, &attempt.proxy_status);
        curl_easy_getinfo(easy_.get(), CURLINFO_CONNECT_TIME_T, &attempt.connect_time);
        attempt.settings = &settings_;
        return attempt;
    }

    [[nodiscard]] std::string redirected_to() const {
        const char* last = nullptr;
        curl_easy_getinfo(easy_.get(), CURLINFO_EFFECTIVE_URL, &last);
        if (last == nullptr || asked_ == last || url_host(last) == url_host(asked_)) return {};
        return url_host(last);
    }

    Response response(long answered) {
        Response response;
        response.status = answered;
        response.url = shown();
        response.headers = headers_;
        return response;
    }

    /// Whether the body is as expected; it then becomes the result.
    bool complete() {
        if (request_.size > 0 && received_ != request_.size) return false;
        digest_ = sha256_.finish();
        sha256_ = Sha256();
        const auto md5 = request_.md5.empty() ? "" : md5_.finish();
        md5_ = Md5();
        const bool fits = request_.sha256.empty() ? request_.md5.empty() || md5 == request_.md5
                                                  : digest_ == request_.sha256;
        if (!request_.sha256.empty())
            got_ = "sha256 " + digest_;
        else
            got_ = "md5 " + md5;
        if (!fits) return false;
        auto answer = response(200);
        answer.body = std::move(body_);
        answer.size = received_;
        answer.sha256 = digest_;
        if (file_) answer.file = std::make_shared<const Fd>(std::move(file_));
        result_ = std::move(answer);
        return true;
    }

    [[nodiscard]] std::string difference() const {
        if (request_.size > 0 && received_ != request_.size)
            return fmt::format("it has {} bytes where {} were expected", received_, request_.size);
        return fmt::format("its checksum is not the expected one: expected {}, got {}",
                           request_.sha256.empty() ? "md5 " + request_.md5 : "sha256 " + request_.sha256,
                           got_);
    }

    Next mismatch(std::string why) {
        const bool had_old_bytes = old_bytes_ > 0;
        restart();
        if (failure_) return end(fail(std::move(*failure_)));
        // What an earlier run left may have been bad.
        if (had_old_bytes) return Next::again;
        Error error{
            .what = "cannot use the download",
            .why = std::move(why),
            .where = shown(),
            .hint = "It was fetched twice. Either the server's files do not fit the list of them (if that "
                    "is the server's, try again later), or something on the way changes them."};
        if (mismatches_++ > 0) return end(fail(std::move(error)));
        log::detail(to_string(error));
        mirror_ = following(mirror_);
        return Next::again;
    }

    /// The mirror after `from` that has not failed for good; `from` itself if there is no other.
    [[nodiscard]] std::size_t following(std::size_t from) const {
        for (std::size_t step = 1; step <= failures_.size(); ++step) {
            const auto candidate = (from + step) % failures_.size();
            if (!failures_[candidate]) return candidate;
        }
        return from;
    }

    /// Gives up this mirror.
    Next next_mirror(Error error) {
        failures_[mirror_] = std::move(error);
        const auto next = following(mirror_);
        if (failures_[next]) {
            if (answer_) return end(std::move(*answer_));
            return end(fail(summary()));
        }
        log::detail(to_string(*failures_[mirror_]));
        mirror_ = next;
        return Next::again;
    }

    [[nodiscard]] Error summary() const {
        auto error = *failures_.front();
        for (std::size_t at = 1; at < failures_.size(); ++at)
            if (failures_[at])
                error.hint += fmt::format("{}The mirror failed too: {}: {}", error.hint.empty() ? "" : "\n",
                                          failures_[at]->where, failures_[at]->why);
        return error;
    }

    /// Decides about the next try after a failure that may be temporary.
    Next try_again(Error error, curl_off_t wait) {
        const bool got_further = received_ > high_mark_ + worthwhile;
        high_mark_ = std::max(high_mark_, received_);
        const auto next = following(mirror_);
        // Another mirror can be asked at once.
        const bool wrapped = next <= mirror_;
        if (got_further)
            rounds_ = 0;
        else if (wrapped)
            ++rounds_;
        if (rounds_ > settings_.retries) {
            error.why += rounds_ > 1 ? fmt::format(" (tried {} times)", rounds_) : "";
            failures_[mirror_] = std::move(error);
            if (answer_) return end(std::move(*answer_));
            auto result = failures_.front() ? summary() : *failures_[mirror_];
            return end(fail(std::move(result)));
        }
        log::detail(to_string(error));
        if (wrapped) not_before_ = Clock::now() + pause(wait);
        mirror_ = next;
        return Next::again;
    }

    [[nodiscard]] Clock::duration pause(curl_off_t wait) const {
        static thread_local std::minstd_rand random{std::random_device{}()};
        const auto doubled = settings_.first_pause * (1U << std::clamp(rounds_, 1U, 11U) >> 1U);
        const auto jitter = std::uniform_real_distribution(0.5, 1.5)(random);
        auto chosen = std::chrono::duration_cast<milliseconds>(doubled * jitter);
        // A server that says "0" means "now", not an endless loop without pauses.
        if (wait > 0) chosen = std::max(chosen, milliseconds(std::chrono::seconds(wait)));
        return std::min<milliseconds>(chosen, longest_pause);
    }

    const Request& request_;
    const Settings& settings_;
    std::vector<std::optional<Error>> failures_; // of mirrors that have failed for good
    std::size_t mirror_ = 0;
    unsigned rounds_ = 0, mismatches_ = 0;
    Clock::time_point not_before_;
    std::optional<Result<Response>> result_;
    std::optional<Response> answer_;

    bool opened_ = false, tried_ = false;
    Fd file_;
    std::string body_;
    Sha256 sha256_;
    Md5 md5_;
    std::string digest_, got_;
    std::uint64_t received_ = 0;  // bytes of the body, in this and earlier tries
    std::uint64_t old_bytes_ = 0; // those of them that an earlier run left
    std::uint64_t high_mark_ = 0; // the most that any try received
    std::uint64_t expected_ = 0;  // by the server's Content-Length
    std::string validator_;       // ETag of the version that `received_` bytes are of

    // Of the current try:
    Easy easy_;
    List list_;
    std::string asked_;
    std::uint64_t offset_ = 0;
    std::map<std::string, std::string> headers_;
    std::size_t header_bytes_ = 0;
    bool body_begun_ = false, ignore_body_ = false, wrong_range_ = false, too_long_ = false;
    bool redirected_ = false;
    std::optional<Error> failure_; // not to be retried
    std::array<char, CURL_ERROR_SIZE> message_{};
};

/// Bytes per second, over the last few seconds.
class Rate {
public:
    double update(std::uint64_t done) {
        const auto now = Clock::now();
        samples_.push_back({now, done});
        while (samples_.size() > 2 && now - samples_.front().when > std::chrono::seconds(4))
            samples_.pop_front();
        const auto& first = samples_.front();
        const auto seconds = std::chrono::duration<double>(now - first.when).count();
        // A download that was restarted has fewer bytes than before.
        if (seconds <= 0 || done < first.done) return 0;
        return static_cast<double>(done - first.done) / seconds;
    }

private:
    struct Sample {
        Clock::time_point when;
        std::uint64_t done;
    };
    std::deque<Sample> samples_;
};

class Engine {
public:
    Engine(const std::vector<Request>& requests, const Settings& settings, const Observer& observer)
        : settings_(settings), observer_(observer), multi_(curl_multi_init()) {
        for (const auto& request : requests) {
            waiting_.push_back(transfers_.size());
            transfers_.push_back(std::make_unique<Transfer>(request, settings));
        }
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine() {
        for (const auto index : active_)
            curl_multi_remove_handle(multi_.get(), transfers_[index]->handle());
    }

    std::vector<Result<Response>> run() {
        curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS,
                          static_cast<long>(settings_.parallel));
        while (!stopped_ && (!waiting_.empty() || !active_.empty())) {
            if (interrupted()) {
                stop(fail_interrupted().error());
                break;
            }
            if (observer_.cancelled && observer_.cancelled()) {
                stop({.what = "the download was given up", .why = {}, .where = {}, .hint = {}});
                break;
            }
            start_some();
            int running = 0;
            curl_multi_perform(multi_.get(), &running);
            collect();
            report();
            if (!stopped_) wait();
        }
        std::vector<Result<Response>> results;
        for (const auto& transfer : transfers_)
            results.push_back(transfer->take());
        return results;
    }

private:
    void start_some() {
        const auto now = Clock::now();
        for (std::size_t tried = waiting_.size(); tried > 0 && active_.size() < settings_.parallel; --tried) {
            const auto index = waiting_.front();
            waiting_.pop_front();
            auto& transfer = *transfers_[index];
            if (transfer.not_before() > now) {
                waiting_.push_back(index);
            } else if (CURL* handle = transfer.start(); handle != nullptr) {
                curl_multi_add_handle(multi_.get(), handle);
                active_.push_back(index);
            } else {
                finished(index);
                if (stopped_) return;
            }
        }
    }

    void collect() {
        int left = 0;
        while (!stopped_) {
            const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
            if (message == nullptr) return;
            if (message->msg != CURLMSG_DONE) continue;
            CURL* handle = message->easy_handle;
            const CURLcode code = message->data.result;
            const auto found = std::ranges::find_if(
                active_, [&](std::size_t index) { return transfers_[index]->handle() == handle; });
            if (found == active_.end()) continue;
            const auto index = *found;
            active_.erase(found);
            curl_multi_remove_handle(multi_.get(), handle);
            if (transfers_[index]->settle(code) == Transfer::Next::again)
                waiting_.push_front(index);
            else
                finished(index);
        }
    }

    void finished(std::size_t index) {
        if (!observer_.finished) return;
        auto done = observer_.finished(index, transfers_[index]->result());
        if (done) return;
        transfers_[index]->give_up(done.error());
        stop(done.error());
    }

    void stop(const Error& error) {
        stopped_ = true;
        for (const auto index : std::exchange(active_, {}))
            curl_multi_remove_handle(multi_.get(), transfers_[index]->handle());
        for (const auto& transfer : transfers_)
            if (!transfer->finished()) transfer->give_up(error);
    }

    void report() {
        const auto now = Clock::now();
        if (!observer_.progress || now < next_report_) return;
        next_report_ = now + tick;
        Progress progress;
        for (const auto& transfer : transfers_) {
            progress.done += transfer->received();
            progress.total += transfer->finished() ? transfer->received()
                                                   : std::max(transfer->received(), transfer->expected());
        }
        progress.rate = rate_.update(progress.done);
        observer_.progress(progress);
    }

    void wait() {
        if (waiting_.empty() && active_.empty()) return;
        auto patience = Clock::duration(tick);
        if (active_.size() < settings_.parallel)
            for (const auto index : waiting_)
                patience = std::min(patience, transfers_[index]->not_before() - Clock::now());
        const auto time = std::max<long>(0, std::chrono::ceil<milliseconds>(patience).count());
        curl_waitfd interrupt{.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN, .revents = 0};
        curl_multi_poll(multi_.get(), &interrupt, interrupt.fd >= 0 ? 1 : 0, static_cast<int>(time), nullptr);
    }

    const Settings& settings_;
    const Observer& observer_;
    Multi multi_;
    std::vector<std::unique_ptr<Transfer>> transfers_;
    std::deque<std::size_t> waiting_;
    std::vector<std::size_t> active_;
    Rate rate_;
    Clock::time_point next_report_;
    bool stopped_ = false;
};

/// Once for the process, before the first handle.
void initialise() {
    static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
    [[maybe_unused]] const auto ignored = done;
}

/// Programs that run later may print the same URLs, and servers may repeat them.
void remember_secrets(const std::vector<Request>& requests, const Settings& settings) {
    for (const auto& login : settings.logins) {
        remember_login(login.user, login.password);
        remember_secret(login.bearer);
    }
    for (const auto& [scheme, proxy] : settings.proxies)
        remember_secrets_in("proxy=" + proxy);
    for (const auto& request : requests)
        for (const auto& url : request.urls)
            if (without_credentials(url) != url) remember_secrets_in(url);
}

void warn_of_no_verification(const std::vector<Request>& requests, const Settings& settings) {
    static bool warned = false;
    const bool encrypted = std::ranges::any_of(requests, [](const Request& request) {
        return std::ranges::any_of(request.urls, [](const auto& url) { return url.starts_with("https:"); });
    });
    if (settings.verify_tls || !encrypted || std::exchange(warned, true)) return;
    log::warn(
        "servers are not verified (ssl_verify: false): anybody on the way can change what is downloaded");
}

} // namespace

std::vector<Result<Response>> fetch(const std::vector<Request>& requests, const Settings& settings,
                                    const Observer& observer) {
    initialise();
    remember_secrets(requests, settings);
    warn_of_no_verification(requests, settings);
    return Engine(requests, settings, observer).run();
}

Result<Response> fetch(const Request& request, const Settings& settings) {
    return std::move(fetch(std::vector{request}, settings).front());
}

} // namespace containerize::http
