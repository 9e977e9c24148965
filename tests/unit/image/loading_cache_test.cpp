#include "image/loading_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::image {
namespace {

struct Block {
    std::vector<std::byte> data = std::vector<std::byte>(100);
    [[nodiscard]] std::size_t bytes() const { return data.size(); }
};
using Cache = LoadingCache<Block>;

TEST(LoadingCache, AnErrorIsNotKept) {
    Cache cache(1U << 20U);
    EXPECT_EQ(cache.get(1, [] { return Cache::Loaded(std::unexpected(EIO)); }).error(), EIO);
    EXPECT_TRUE(cache.get(1, [] { return Cache::Loaded(std::make_shared<Block>()); }));
}

TEST(LoadingCache, WhoeverWaitsForAThreadWithoutMemoryGoesOn) {
    Cache cache(1U << 20U);
    std::atomic<bool> loading = false;
    std::jthread other;
    const auto first = cache.get(1, [&]() -> Cache::Loaded {
        other = std::jthread([&] {
            loading = true;
            loading.notify_one();
            EXPECT_TRUE(cache.get(1, [] { return Cache::Loaded(std::make_shared<Block>()); }));
        });
        loading.wait(false);
        throw std::bad_alloc();
    });
    EXPECT_EQ(first.error(), ENOMEM);
}

} // namespace
} // namespace containerize::image
