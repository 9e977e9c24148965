// A server that dies is replaced as long as a new one helps.
#include "fuse/server_deaths.h"

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

namespace containerize::fuse {
namespace {

using namespace std::chrono_literals;
using Next = ServerDeaths::Next;

constexpr int killed = SIGKILL; // a status as wait() returns it
constexpr int ended = 1U << 8U; // exited with status 1

class Deaths : public testing::Test {
protected:
    /// The life of a server that opens its images and answers so many requests. It dies while it handles a
    /// request (0: while it is idle).
    Next live(std::uint64_t answered, std::uint64_t request, std::chrono::seconds life = 1s) {
        deaths.started(progress, now);
        progress.serving = true;
        progress.threads[1].answered += answered;
        progress.threads[2].request = request;
        now += life;
        return deaths.died(killed, progress, now);
    }
    ServerProgress progress;
    ServerDeaths deaths;
    ServerDeaths::Clock::time_point now;
};

TEST_F(Deaths, ServersThatAnswerAreReplacedAtOnceHoweverOftenTheyAreKilled) {
    for (std::uint64_t i = 1; i < 1000; ++i) {
        ASSERT_EQ(live(3, i), Next::successor);
        ASSERT_EQ(deaths.pause(), 0ms);
        ASSERT_TRUE(deaths.suspects().alone.empty());
    }
}

TEST_F(Deaths, ServersThatHaveNothingToDoAreReplacedToo) {
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(live(0, 0, 1h), Next::successor);
    EXPECT_EQ(deaths.pause(), 0ms);
}

TEST_F(Deaths, ServersThatOnlyDieAreGivenUpAfterLongerAndLongerPauses) {
    for (unsigned i = 1; i < ServerDeaths::most; ++i) {
        ASSERT_EQ(live(0, 0), Next::successor) << i;
        EXPECT_EQ(deaths.pause(), i <= 2 ? 0ms : 50ms * (1 << std::min(i - 3, 2U))) << i;
    }
    EXPECT_EQ(live(0, 0), Next::none);
}

// However long each of them takes.
TEST_F(Deaths, ServersThatCannotOpenTheImagesAreGivenUp) {
    for (unsigned i = 1; i <= ServerDeaths::most; ++i) {
        deaths.started(progress, now);
        now += 1h;
        EXPECT_EQ(deaths.died(killed, progress, now), i < ServerDeaths::most ? Next::successor : Next::none);
    }
}

TEST_F(Deaths, AServerThatEndsByItselfHasNoSuccessor) {
    deaths.started(progress, now);
    EXPECT_EQ(deaths.died(ended, progress, now + 1s), Next::none);
}

// Other requests are answered meanwhile. The kernel marks a request that it sends again.
TEST_F(Deaths, ARequestThatServersDieOfIsAnsweredAloneAndThenRefused) {
    constexpr std::uint64_t bad = 42;
    EXPECT_EQ(request_number(bad | std::uint64_t{1} << 63U), bad);
    for (unsigned i = 1; i < ServerDeaths::most; ++i) {
        ASSERT_EQ(live(5, bad), Next::successor);
        EXPECT_EQ(deaths.suspects().alone.contains(bad), i >= ServerDeaths::until_alone) << i;
        EXPECT_TRUE(deaths.suspects().refused.empty());
    }
    ASSERT_EQ(live(0, bad), Next::successor);
    EXPECT_TRUE(deaths.suspects().refused.contains(bad));
    EXPECT_EQ(deaths.pause(), 0ms);
    // The next such request is not refused because of the first one.
    EXPECT_EQ(live(0, 43), Next::successor);
    EXPECT_FALSE(deaths.suspects().refused.contains(43));
}

} // namespace
} // namespace containerize::fuse
