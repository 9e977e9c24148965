#include "http/transfer.h"

#include "core/text.h"
#include "core/url.h"
#include "core/variables.h"
#include "core/version.h"
#include "http/body.h"
#include "http/failure.h"
#include "http/proxy_login.h"
#include "util/log.h"
#include "util/progress.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace containerize::http {

namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto longest_pause = std::chrono::seconds(120);
/// A broken transfer that got this much further than any before starts the count of retries anew.
constexpr std::uint64_t worthwhile = 64U << 10U;
constexpr std::uint64_t memory_limit = 64U << 20U;
constexpr std::size_t header_limit = 256U << 10U;

struct FreeEasy {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using List = std::unique_ptr<curl_slist, FreeList>;

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

class CurlTransfer : public Transfer {
public:
    CurlTransfer(const Request& request, const Settings& settings)
        : request_(request), settings_(settings), body_(request), failures_(request.urls.size()),
          passing_(request.urls.size()) {}
    CurlTransfer(const CurlTransfer&) = delete;
    CurlTransfer& operator=(const CurlTransfer&) = delete;

    CURL* start() override {
        if (!opened_) {
            opened_ = true;
            if (auto ready = body_.open(); !ready) return finish(fail(std::move(ready.error())));
            if (body_.received() > 0)
                log::detail(
                    fmt::format("{}: {} are already downloaded", shown(), human_bytes(body_.received())));
            if (request_.size > 0 && body_.received() == request_.size) {
                if (complete()) return nullptr;
                restart();
            }
        }
        easy_.reset(curl_easy_init());
        if (!easy_) return finish(fail({.what = "cannot start libcurl"}));
        prepare();
        return easy_.get();
    }

    Next settle(CURLcode code) override {
        const auto next = judge(code);
        easy_.reset();
        list_.reset();
        return next;
    }

    [[nodiscard]] bool finished() const override { return result_.has_value(); }
    [[nodiscard]] const Result<Response>& result() const override { return *result_; }
    Result<Response> take() override { return std::move(*result_); }
    void give_up(const Error& error) override {
        easy_.reset();
        result_ = fail(Error(error));
    }
    [[nodiscard]] Clock::time_point not_before() const override { return not_before_; }
    [[nodiscard]] std::uint64_t received() const override { return body_.received(); }
    [[nodiscard]] std::uint64_t expected() const override { return std::max(expected_, request_.size); }
    [[nodiscard]] CURL* handle() const override { return easy_.get(); }

private:
    [[nodiscard]] const std::string& url() const { return request_.urls[mirror_]; }
    [[nodiscard]] bool is_file() const { return url().starts_with("file:"); }
    [[nodiscard]] std::string shown() const { return without_credentials(url()); }

    CURL* finish(Result<Response> result) {
        result_ = std::move(result);
        return nullptr;
    }
    Next end(Result<Response> result) {
        result_ = std::move(result);
        return Next::done;
    }

    /// Discards what was received.
    void restart() {
        if (auto done = body_.restart(); !done) failure_ = std::move(done.error());
        validator_.clear();
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
        if (received() > 0 && (is_file() || request_.compress || (validator_.empty() && !body_.has_digest())))
            restart();
        offset_ = received();
        asked_ = url_encoded(url());
        set(CURLOPT_URL, asked_.c_str());
        set(CURLOPT_PROTOCOLS_STR, "http,https,file");
        set(CURLOPT_ERRORBUFFER, message_.data());
        set(CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
        set(CURLOPT_WRITEDATA, this);
        set(CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
        set(CURLOPT_HEADERDATA, this);
        set(CURLOPT_OPENSOCKETFUNCTION, &CurlTransfer::on_socket);
        set(CURLOPT_OPENSOCKETDATA, this);
        set(CURLOPT_USERAGENT, (std::string("containerize/") + this_version).c_str()); // curl copies it
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
                set_login(*login);
            }
        }
        set(CURLOPT_HTTPHEADER, list_.get());
    }

    void set_login(const Login& login) {
        // A libcurl that cannot sign would send the password.
        if (!login.signature.empty() &&
            curl_easy_setopt(easy_.get(), CURLOPT_AWS_SIGV4, login.signature.c_str()) != CURLE_OK)
            return;
        // After a redirect, libcurl would send the token to the other host, where the signature does not
        // count.
        if (!login.signature.empty()) set(CURLOPT_FOLLOWLOCATION, 0L);
        if (!login.session.empty()) append(list_, "x-amz-security-token: " + login.session);
        set(CURLOPT_USERNAME, login.user.c_str());
        set(CURLOPT_PASSWORD, login.password.c_str());
    }

    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
        return static_cast<CurlTransfer*>(self)->header({data, size * count}) ? size * count : 0;
    }
    static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address) {
        return static_cast<CurlTransfer*>(self)->open_socket(*address);
    }
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
        return static_cast<CurlTransfer*>(self)->body(data, size * count) ? size * count : 0;
    }

    curl_socket_t open_socket(const curl_sockaddr& address) {
        // Proxies have no such addresses, so this is a server, also where there is a proxy for other servers.
        if ((redirected_ || request_.named_by_server) && is_link_local(address.addr)) {
            failure_ = Error{
                .what = "cannot download",
                .why = "the server refers to a link-local address, which is never public",
                .where = shown(),
                .hint = "This may be an attempt to read private data. Ask the operators of the server."};
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
        if (length > 0 && !request_.compress) expected_ = received() + static_cast<std::uint64_t>(length);
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
                             .where = shown()};
        return false;
    }

    bool body(const char* data, std::size_t size) {
        if (!body_begun_ && !begin_body()) return false;
        if (ignore_body_) return true;
        if (!check_limit(received() + size)) return false;
        auto stored = body_.store({data, size});
        if (!stored) failure_ = std::move(stored.error());
        return stored.has_value();
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
            return mismatch(body_.difference());
        }
        if (code == CURLE_OK && answered == 304) return end(response(304));
        if (answered == 416 && received() > 0) {
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
        if (!body_.is_whole()) return false;
        auto answer = response(200);
        body_.move_to(answer);
        result_ = std::move(answer);
        return true;
    }

    Next mismatch(std::string why) {
        const bool had_old_bytes = body_.old_bytes() > 0;
        restart();
        if (failure_) return end(fail(std::move(*failure_)));
        // What an earlier run left may have been bad.
        if (had_old_bytes) return Next::again;
        Error error{.what = "cannot use the download",
                    .why = std::move(why),
                    .where = shown(),
                    .hint = fmt::format(
                        "The file was downloaded twice. Either the server's files do not match {}, or "
                        "something on the way changes them.",
                        settings_.advice.checksums)};
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
                error.hint +=
                    fmt::format("{}This address failed, too: {}: {}", error.hint.empty() ? "" : "\n",
                                failures_[at]->where, failures_[at]->why);
        return error;
    }

    /// Decides about the next try after a failure that may be temporary.
    Next try_again(Error error, curl_off_t wait) {
        const bool got_further = received() > high_mark_ + worthwhile;
        high_mark_ = std::max(high_mark_, received());
        const auto next = following(mirror_);
        // Another mirror can be asked at once.
        const bool wrapped = next <= mirror_;
        if (got_further)
            rounds_ = 0;
        else if (wrapped)
            ++rounds_;
        passing_[mirror_] = error;
        if (rounds_ > settings_.retries) {
            error.why += rounds_ > 1 ? fmt::format(" (tried {} times)", rounds_) : "";
            failures_[mirror_] = std::move(error);
            if (answer_) return end(std::move(*answer_));
            for (std::size_t at = 0; at < failures_.size(); ++at)
                if (!failures_[at]) failures_[at] = std::move(passing_[at]);
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
    Body body_;
    std::vector<std::optional<Error>> failures_; // of mirrors that have failed for good
    std::vector<std::optional<Error>> passing_;  // the last one of each mirror that may be temporary
    std::size_t mirror_ = 0;
    unsigned rounds_ = 0, mismatches_ = 0;
    Clock::time_point not_before_;
    std::optional<Result<Response>> result_;
    std::optional<Response> answer_;

    bool opened_ = false, tried_ = false;
    std::uint64_t high_mark_ = 0; // the most that any try received
    std::uint64_t expected_ = 0;  // by the server's Content-Length
    std::string validator_;       // ETag of the version that the received bytes are of

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

} // namespace

std::unique_ptr<Transfer> make_transfer(const Request& request, const Settings& settings) {
    return std::make_unique<CurlTransfer>(request, settings);
}

} // namespace containerize::http
