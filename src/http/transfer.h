// One request with all its tries.
#pragma once

#include "http/http.h"

#include <chrono>
#include <cstdint>
#include <memory>

#include <curl/curl.h>

namespace containerize::http {

class Transfer {
public:
    enum class Next { done, again };

    virtual ~Transfer() = default;
    /// Returns the handle for the next try; null if there is nothing (more) to ask, with the result set.
    virtual CURL* start() = 0;
    /// The handle of the current try.
    [[nodiscard]] virtual CURL* handle() const = 0;
    /// Evaluates a try that has ended.
    virtual Next settle(CURLcode code) = 0;
    /// When the next try may start.
    [[nodiscard]] virtual std::chrono::steady_clock::time_point not_before() const = 0;
    virtual void give_up(const Error& error) = 0;

    [[nodiscard]] virtual bool finished() const = 0;
    [[nodiscard]] virtual const Result<Response>& result() const = 0;
    virtual Result<Response> take() = 0;
    [[nodiscard]] virtual std::uint64_t received() const = 0; ///< bytes of the body
    [[nodiscard]] virtual std::uint64_t expected() const = 0; ///< 0 if unknown
};

/// Both must outlive it.
std::unique_ptr<Transfer> make_transfer(const Request& request, const Settings& settings);

} // namespace containerize::http
