// Decides what happens when servers die: each is replaced, unless no successor could do better.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace containerize::fuse {

/// What the servers of a mount are doing, in memory that they share with their supervisor.
struct ServerProgress {
    struct alignas(64) Thread {
        std::atomic<std::uint64_t> request = 0; ///< the number of the request being answered; 0: none
        std::atomic<std::uint64_t> answered = 0;
    };
    static constexpr std::size_t most_threads = 16;
    std::array<Thread, most_threads> threads;
    std::atomic<bool> serving = false; ///< set once the images are open
    /// Why the server exited by itself, NUL-terminated; written last of all.
    std::array<char, 512> failure = {};

    [[nodiscard]] std::uint64_t answered() const;
};

/// What a server must know about the deaths of earlier ones. Requests are identified by the kernel's numbers,
/// which stay the same when they are resent.
struct Suspects {
    std::set<std::uint64_t> alone;   ///< to be answered one at a time: servers may die of one of them
    std::set<std::uint64_t> refused; ///< to be failed: servers died of them
};

/// Counts the deaths of a mount's servers. Kills from outside come at any moment; but a request that kills
/// servers is in progress at each death, because the kernel resends it.
class ServerDeaths {
public:
    using Clock = std::chrono::steady_clock;

    /// Limit for deaths in a row with the same request in progress, and for servers in a row that answered
    /// nothing. Not lower: twenty kills from outside in a second may all come before a busy machine answers
    /// anything.
    static constexpr unsigned most = 32;
    /// After so many deaths, the requests in progress are answered one at a time.
    static constexpr unsigned until_alone = 8;

    void started(ServerProgress& progress, Clock::time_point now);
    enum class Next { successor, none };
    /// `status` is from wait(). A server that exits by itself has found that it cannot serve, so that no
    /// successor could.
    Next died(int status, ServerProgress& progress, Clock::time_point now);
    /// To be called when the kernel begins to number requests anew.
    void on_new_connection();
    /// How long to wait before the successor is started.
    [[nodiscard]] std::chrono::milliseconds pause() const;
    [[nodiscard]] const Suspects& suspects() const { return suspects_; }

private:
    std::map<std::uint64_t, unsigned> under_way_; ///< at the last death: at how many deaths in a row
    unsigned fruitless_ = 0;                      ///< how many servers in a row answered nothing
    Suspects suspects_;
    std::uint64_t answered_before_ = 0;
    Clock::time_point birth_;
};

/// The number of a request, which is the same whether the kernel sends it for the first time or again.
std::uint64_t request_number(std::uint64_t unique);

} // namespace containerize::fuse
