#include "fuse/server_deaths.h"

#include <algorithm>
#include <utility>

#include <sys/wait.h>

namespace containerize::fuse {

namespace {

/// FUSE_UNIQUE_RESEND (Linux 6.9).
constexpr std::uint64_t resent = std::uint64_t{1} << 63U;
/// A server that lives this long has not failed: somebody killed it while there was nothing to answer.
constexpr auto long_life = std::chrono::minutes(1);
constexpr unsigned deaths_without_pause = 2;
constexpr std::chrono::milliseconds first_pause{50};
constexpr unsigned most_doublings = 2;

} // namespace

std::uint64_t ServerProgress::answered() const {
    std::uint64_t sum = 0;
    for (const auto& thread : threads)
        sum += thread.answered.load(std::memory_order_relaxed);
    return sum;
}

std::uint64_t request_number(std::uint64_t unique) {
    return unique & ~resent;
}

void ServerDeaths::started(ServerProgress& progress, Clock::time_point now) {
    for (auto& thread : progress.threads)
        thread.request = 0;
    progress.serving = false;
    progress.failure.front() = '\0';
    answered_before_ = progress.answered();
    birth_ = now;
}

ServerDeaths::Next ServerDeaths::died(int status, ServerProgress& progress, Clock::time_point now) {
    if (WIFEXITED(status)) return Next::none;
    std::map<std::uint64_t, unsigned> under_way;
    for (const auto& thread : progress.threads)
        if (const auto number = thread.request.load(); number != 0) {
            const auto before = under_way_.find(number);
            under_way[number] = before == under_way_.end() ? 1 : before->second + 1;
        }
    under_way_ = std::move(under_way);
    const bool answered_nothing = progress.answered() == answered_before_;
    const bool is_fruitless = !progress.serving || (answered_nothing && now - birth_ < long_life);
    fruitless_ = is_fruitless ? fruitless_ + 1 : 0;

    suspects_.alone.clear();
    for (const auto& [number, deaths] : under_way_) {
        if (deaths >= until_alone) suspects_.alone.insert(number);
        if (deaths >= most) suspects_.refused.insert(number);
    }
    // Without these requests, the next server may do better.
    if (std::erase_if(under_way_, [](const auto& one) { return one.second >= most; }) > 0) fruitless_ = 0;
    return fruitless_ < most ? Next::successor : Next::none;
}

void ServerDeaths::on_new_connection() {
    under_way_.clear();
    suspects_ = {};
}

std::chrono::milliseconds ServerDeaths::pause() const {
    unsigned in_a_row = fruitless_;
    for (const auto& [number, deaths] : under_way_)
        in_a_row = std::max(in_a_row, deaths);
    if (in_a_row <= deaths_without_pause) return std::chrono::milliseconds(0);
    return first_pause * (1U << std::min(in_a_row - deaths_without_pause - 1, most_doublings));
}

} // namespace containerize::fuse
