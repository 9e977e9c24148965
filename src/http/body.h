// Where the body of a response goes, in memory or to a file, and whether it is what was expected.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "http/http.h"
#include "util/digest.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace containerize::http {

class Body {
public:
    explicit Body(const Request& request) : request_(request) {}

    /// Opens the file. What an earlier run left there is kept if its digest will tell whether it is good.
    Status open();
    Status store(std::string_view data);
    /// Discards what was received.
    Status restart();

    /// Whether it has the expected size and digest.
    bool is_whole();
    /// Why it is not whole.
    [[nodiscard]] std::string difference() const;
    /// Only if it is whole.
    void move_to(Response& response);

    /// Bytes, in this and earlier tries.
    [[nodiscard]] std::uint64_t received() const { return received_; }
    /// Those of them that an earlier run left.
    [[nodiscard]] std::uint64_t old_bytes() const { return old_bytes_; }
    [[nodiscard]] bool has_digest() const { return !request_.sha256.empty() || !request_.md5.empty(); }

private:
    bool take_in(std::uint64_t present);
    void count(std::string_view data);

    const Request& request_;
    Fd file_;
    std::string text_;
    Sha256 sha256_;
    Md5 md5_;
    std::string digest_, got_;
    std::uint64_t received_ = 0, old_bytes_ = 0;
};

} // namespace containerize::http
