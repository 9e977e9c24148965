#include "http/http.h"

#include "core/interrupt.h"
#include "core/url.h"
#include "http/transfer.h"
#include "util/log.h"
#include "util/redact.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <curl/curl.h>

namespace containerize::http {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto tick = std::chrono::milliseconds(200);

struct FreeMulti {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
using Multi = std::unique_ptr<CURLM, FreeMulti>;

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

class Engine {
public:
    Engine(const std::vector<Request>& requests, const Settings& settings, const Observer& observer)
        : settings_(settings), observer_(observer), multi_(curl_multi_init()) {
        for (const auto& request : requests)
            add(request);
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
                stop({.what = "the download was cancelled"});
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
        for (auto& transfer : transfers_)
            results.push_back(transfer->take());
        return results;
    }

private:
    void add(const Request& request) {
        waiting_.push_back(transfers_.size());
        transfers_.push_back(make_transfer(request, settings_));
    }

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
        if (auto done = observer_.finished(index, transfers_[index]->result()); !done) {
            transfers_[index]->give_up(done.error());
            return stop(done.error());
        }
        if (!observer_.more) return;
        auto requests = observer_.more();
        remember_secrets(requests, settings_);
        for (auto& request : requests)
            add(further_.emplace_back(std::move(request)));
    }

    void stop(const Error& error) {
        stopped_ = true;
        for (const auto index : std::exchange(active_, {}))
            curl_multi_remove_handle(multi_.get(), transfers_[index]->handle());
        for (auto& transfer : transfers_)
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
        const auto time = std::max<long>(0, std::chrono::ceil<std::chrono::milliseconds>(patience).count());
        curl_waitfd interrupt{.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN, .revents = 0};
        curl_multi_poll(multi_.get(), &interrupt, interrupt.fd >= 0 ? 1 : 0, static_cast<int>(time), nullptr);
    }

    const Settings& settings_;
    const Observer& observer_;
    Multi multi_;
    std::deque<Request> further_; ///< from Observer::more; transfers refer to them
    std::vector<std::unique_ptr<Transfer>> transfers_;
    std::deque<std::size_t> waiting_;
    std::vector<std::size_t> active_;
    Rate rate_;
    Clock::time_point next_report_;
    bool stopped_ = false;
};

/// Once for the process, before the first handle.
void initialise() {
    [[maybe_unused]] static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
}

void warn_of_no_verification(const std::vector<Request>& requests, const Settings& settings) {
    static bool warned = false;
    const bool encrypted = std::ranges::any_of(requests, [](const Request& request) {
        return std::ranges::any_of(request.urls, [](const auto& url) { return url.starts_with("https:"); });
    });
    if (settings.verify_tls || !encrypted || std::exchange(warned, true)) return;
    const auto& setting = settings.advice.no_verification;
    log::warn("server certificates are not verified" + (setting.empty() ? "" : " (" + setting + ")") +
              ", so downloads can be changed on the way");
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
