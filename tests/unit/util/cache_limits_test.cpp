#include "util/cache_limits.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize {

namespace {

constexpr std::int64_t day = std::int64_t{24} * 60 * 60;
constexpr std::int64_t now = 1000 * day;

/// Removes from files of 10, 20, 30 and 40 bytes that were used 10, 20, 30 and 40 days ago. Their names are
/// the days.
std::vector<std::string> removed(const CacheLimits& limits, std::optional<std::int64_t> in_use_since = {}) {
    std::vector<CachedFile> files;
    for (const unsigned days : {20U, 40U, 10U, 30U})
        files.push_back({.path = std::to_string(days), .bytes = days, .last_use = now - days * day});
    std::vector<std::string> names;
    for (const auto& file : files_to_remove(files, limits, now, in_use_since))
        names.push_back(file.path);
    return names;
}

using Names = std::vector<std::string>;
using std::chrono::days;

TEST(FilesToRemove, AreNoneWithoutLimits) {
    EXPECT_EQ(removed({}), Names{});
}

TEST(FilesToRemove, AreThoseThatWereNotUsedForLong) {
    EXPECT_EQ(removed({.bytes = {}, .age = days(40)}), Names{}) << "exactly as old";
    EXPECT_EQ(removed({.bytes = {}, .age = days(25)}), (Names{"40", "30"}));
    EXPECT_EQ(removed({.bytes = {}, .age = days(1)}), (Names{"40", "30", "20", "10"}));
}

TEST(FilesToRemove, AreTheLeastRecentlyUsedOnesUntilTheOthersFit) {
    EXPECT_EQ(removed({.bytes = 100, .age = {}}), Names{});
    EXPECT_EQ(removed({.bytes = 99, .age = {}}), Names{"40"});
    EXPECT_EQ(removed({.bytes = 60, .age = {}}), Names{"40"});
    EXPECT_EQ(removed({.bytes = 59, .age = {}}), (Names{"40", "30"}));
    EXPECT_EQ(removed({.bytes = 0, .age = {}}), (Names{"40", "30", "20", "10"}));
}

TEST(FilesToRemove, ExceedEitherLimit) {
    EXPECT_EQ(removed({.bytes = 60, .age = days(25)}), (Names{"40", "30"})) << "by their age";
    EXPECT_EQ(removed({.bytes = 10, .age = days(35)}), (Names{"40", "30", "20"})) << "by their size";
}

TEST(FilesToRemove, AreNotThoseThatABuildMayUse) {
    EXPECT_EQ(removed({.bytes = 0, .age = days(5)}, now - 25 * day), (Names{"40", "30"}));
    EXPECT_EQ(removed({.bytes = 0, .age = {}}, now - 40 * day), Names{}) << "used at that very moment";
}

TEST(FilesToRemove, AreNotThoseOfAFuture) {
    const std::vector<CachedFile> files = {{.path = "other clock", .bytes = 5, .last_use = now + day}};
    EXPECT_TRUE(files_to_remove(files, {.bytes = {}, .age = days(1)}, now, {}).empty());
    EXPECT_EQ(files_to_remove(files, {.bytes = 4, .age = {}}, now, {}).size(), 1U);
}

} // namespace

} // namespace containerize
