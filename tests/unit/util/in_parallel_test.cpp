#include "good.h"
#include "util/in_parallel.h"

#include <atomic>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

namespace containerize {
namespace {

TEST(InParallel, DoesEverythingOnce) {
    for (const unsigned threads : {0U, 1U, 3U, 100U}) {
        std::mutex mutex;
        std::multiset<std::size_t> done;
        test::good(in_parallel(threads, 50, [&](std::size_t number) -> Status {
            const std::lock_guard lock(mutex);
            done.insert(number);
            return {};
        }));
        EXPECT_EQ(done.size(), 50U);
        EXPECT_EQ(std::set(done.begin(), done.end()).size(), 50U);
    }
}

TEST(InParallel, StopsAtTheFirstFailure) {
    std::atomic<int> calls = 0;
    const auto result = in_parallel(1, 50, [&](std::size_t number) -> Status {
        ++calls;
        return number < 7 ? Status() : Status(fail({.what = "failed at " + std::to_string(number)}));
    });
    EXPECT_EQ(test::error_of(result).what, "failed at 7");
    EXPECT_EQ(calls, 8);
    EXPECT_TRUE(in_parallel(4, 0, [](std::size_t) -> Status { return fail({.what = "called"}); }));
}

} // namespace
} // namespace containerize
