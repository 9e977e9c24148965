// Limits of the cache: what is counted, and what is removed first.
#include "environments/image_cache.h"
#include "good.h"
#include "temporary.h"

#include <ctime>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace containerize::environments {

namespace {

using test::good;
using test::TemporaryDirectory;

class CacheLimitsTest : public testing::Test {
protected:
    CacheLimitsTest() {
        fs::create_directories(conda::packages_in(place.path()));
        good(conda::make_images(place.path()));
    }

    /// Of 1000 bytes.
    fs::path add(const fs::path& file, int days) const {
        std::ofstream(file) << std::string(1000, 'x');
        const timespec then{.tv_sec = std::time(nullptr) - days * day, .tv_nsec = 0};
        const timespec times[2] = {then, then};
        EXPECT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
        return file;
    }
    [[nodiscard]] fs::path archive(char name, int days) const {
        return add(conda::packages_in(place.path()) / (std::string(16, name) + "-p-1-0.conda"), days);
    }
    [[nodiscard]] fs::path image(char name, int days) const {
        return add(conda::images_in(place.path()) / (std::string(64, name) + "-zstd3-128K.1.sqfs"), days);
    }
    [[nodiscard]] std::set<fs::path> counted() const {
        std::set<fs::path> paths;
        for (const auto& file : limited_files(places))
            paths.insert(file.path);
        return paths;
    }

    static constexpr std::time_t day = 86400;
    const TemporaryDirectory place;
    const conda::CachePlaces places = conda::places_in(place.path(), {});
};

TEST_F(CacheLimitsTest, AreForArchivesAndImages) {
    const auto old = archive('a', 20);
    const auto older = image('b', 30);
    const auto recent = archive('c', 2);
    const auto latest = image('d', 1);
    const auto download =
        add(conda::packages_in(place.path()) / ("." + recent.filename().string() + ".node.1.part"), 40);
    const auto notes = add(conda::packages_in(place.path()) / "notes.txt", 40);
    EXPECT_EQ(counted(), (std::set{old, older, recent, latest}));
    EXPECT_EQ(good(apply_limits(places, {.bytes = 4000, .age = {}})).files, 0U);
    const auto removed = good(apply_limits(places, {.bytes = 3999, .age = {}}));
    EXPECT_EQ(removed.files, 1U);
    EXPECT_EQ(removed.bytes, 1000U);
    EXPECT_FALSE(removed.in_use);
    EXPECT_EQ(counted(), (std::set{old, recent, latest}));
    EXPECT_EQ(good(apply_limits(places, {.bytes = {}, .age = std::chrono::days(10)})).files, 1U);
    EXPECT_EQ(counted(), (std::set{recent, latest}));
    {
        const auto build = good(packages::lock_for_reading(conda::images_in(place.path())));
        EXPECT_TRUE(good(apply_limits(places, {.bytes = 0, .age = {}})).in_use);
        EXPECT_EQ(counted(), std::set{latest}) << "a build may use it";
    }
    EXPECT_EQ(good(apply_limits(places, {.bytes = 0, .age = {}})).files, 1U);
    EXPECT_TRUE(fs::exists(download));
    EXPECT_TRUE(fs::exists(notes));
}

TEST_F(CacheLimitsTest, AreNotForFilesOfOthers) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    const auto theirs = archive('a', 20);
    const auto ours = archive('b', 20);
    ASSERT_EQ(chown(theirs.c_str(), 12345, 12345), 0);
    EXPECT_EQ(counted(), std::set{ours});
    EXPECT_EQ(good(apply_limits(places, {.bytes = 0, .age = {}})).files, 1U);
    EXPECT_TRUE(fs::exists(theirs));
}

} // namespace

} // namespace containerize::environments
