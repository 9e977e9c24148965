// What is done about servers that die: each is replaced, unless no successor could do better.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace containerize::runtime {

/// What a mount's servers are at, in memory that their supervisor shares with them.
struct ServerProgress {
    struct alignas(64) Thread {
        std::atomic<std::uint64_t> request =
            0; ///< the kernel's number of the one that is being answered; 0: none
        std::atomic<std::uint64_t> answered = 0;
    };
    static constexpr std::size_t most_threads = 16;
    std::array<Thread, most_threads> threads;
    std::atomic<bool> serving = false; ///< its images are open
    /// Why the server ended by itself, NUL-terminated; written last of all.
    std::array<char, 512> failure{};

    [[nodiscard]] std::uint64_t answered() const;
};

/// What a server must know of those before it. Requests go by the kernel's numbers, which they keep when they
/// are handed out again.
struct Suspects {
    std::set<std::uint64_t> alone;   ///< to be answered one at a time: one of them may be what servers die of
    std::set<std::uint64_t> refused; ///< to be failed: servers died of it
};

/// Counts a mount's servers' deaths. Who kills servers from outside kills them at any moment; a request that
/// servers die of is under way at each death, because the kernel hands it out again.
class ServerDeaths {
public:
    using Clock = std::chrono::steady_clock;

    /// So often a request may be under way, or a server die without having answered any.
    /// Twenty in a second, from outside, can all come before a busy machine lets any server answer.
    static constexpr unsigned most = 32;
    /// From then on what is under way is answered alone.
    static constexpr unsigned until_alone = 8;

    void born(ServerProgress& progress, Clock::time_point now);
    enum class Next { successor, none };
    /// `status` as wait() has it. A server that ends by itself with an error has found that it cannot serve,
    /// and no other can.
    Next died(int status, ServerProgress& progress, Clock::time_point now);
    /// How long to wait before the successor is started.
    [[nodiscard]] std::chrono::milliseconds pause() const;
    [[nodiscard]] const Suspects& suspects() const { return suspects_; }

private:
    std::map<std::uint64_t, unsigned> under_way_; ///< at the last death: at how many deaths in a row
    unsigned fruitless_ = 0;                      ///< lives in a row in which nothing was answered
    Suspects suspects_;
    std::uint64_t answered_before_ = 0;
    Clock::time_point birth_;
};

/// The number of a request, whether the kernel hands it out for the first time or again.
std::uint64_t request_number(std::uint64_t unique);

} // namespace containerize::runtime
