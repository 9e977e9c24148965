// The cache of package images: what is damaged, unfinished or another user's is never used.
#include "core/filesystem.h"
#include "good.h"
#include "packages/package_images.h"
#include "temporary.h"
#include "util/in_parallel.h"

#include <array>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::packages {
namespace {

using test::error_of;
using test::good;
using test::TemporaryDirectory;

std::set<std::string> in_order(const std::vector<std::string>& names) {
    return {names.begin(), names.end()};
}

class Images : public testing::Test {
protected:
    Images() : images({.directory = make("cache"), .fallback = make("fallback")}) {}

    fs::path make(const char* name) {
        fs::create_directory(work / name);
        return work / name;
    }

    Result<std::unique_ptr<image::Reader>> add(const std::string& content) {
        return images.make(key, {}, [&](image::Writer& writer) -> Status {
            ++times_filled;
            TRY(writer.begin_file("file", {}));
            TRY(writer.append(std::as_bytes(std::span(content))));
            return writer.end_file();
        });
    }

    [[nodiscard]] std::vector<std::string> names(const char* directory) const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(work / directory))
            found.push_back(entry.path().filename());
        return found;
    }
    [[nodiscard]] fs::path file() const { return work / "cache" / key.file_name(); }

    TemporaryDirectory work;
    PackageImages images;
    const ImageKey key{.archive = std::string(64, 'a'), .compression = {}, .block_size = 131072};
    int times_filled = 0;
};

TEST_F(Images, AreNamedByAllThatDecidesTheirBytes) {
    EXPECT_EQ(key.file_name(), std::string(64, 'a') + "-zstd3-128K.1.sqfs");
    ImageKey other = key;
    other.part = "cpython-311-a70d0d0a";
    other.compression = {.compressor = image::Compressor::lz4, .level = 0};
    other.block_size = 4096;
    EXPECT_EQ(other.file_name(), std::string(64, 'a') + "-cpython-311-a70d0d0a-lz4-4K.1.sqfs");
}

TEST_F(Images, AreFoundAfterTheyWereMade) {
    EXPECT_EQ(images.find(key), nullptr);
    const auto made = good(add("content"));
    EXPECT_NE(made, nullptr);
    const auto found = images.find(key);
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(found->lookup(found->root(), "file"));
    EXPECT_EQ(names("cache"), std::vector{key.file_name()});
}

TEST_F(Images, ThatWereCutOrChangedAreRemoved) {
    good(add("content"));
    const auto whole = good(read_file(file()));
    for (const std::size_t size : {std::size_t{0}, std::size_t{50}, whole.size() / 2, whole.size() - 1}) {
        std::ofstream(file(), std::ios::trunc) << whole.substr(0, size);
        EXPECT_EQ(images.find(key), nullptr) << size;
        EXPECT_FALSE(fs::exists(file())) << size;
    }
    for (std::size_t position = 0; position < whole.size(); position += 97) {
        auto changed = whole;
        changed[position] = static_cast<char>(changed[position] ^ 0x10);
        std::ofstream(file(), std::ios::trunc) << changed;
        EXPECT_EQ(images.find(key), nullptr) << position;
    }
    std::ofstream(file(), std::ios::trunc) << whole;
    EXPECT_NE(images.find(key), nullptr);
}

TEST_F(Images, OfOthersAreNotUsed) {
    good(add("content"));
    ASSERT_EQ(chmod(file().c_str(), 0666), 0);
    EXPECT_EQ(images.find(key), nullptr) << "others can write to it";
    ASSERT_EQ(chmod(file().c_str(), 0644), 0);
    EXPECT_NE(images.find(key), nullptr);
    fs::rename(file(), work / "elsewhere");
    fs::create_symlink(work / "elsewhere", file());
    EXPECT_EQ(images.find(key), nullptr) << "a link may lead to anything";
    if (geteuid() != 0) return;
    fs::remove(file());
    fs::rename(work / "elsewhere", file());
    ASSERT_EQ(chown(file().c_str(), 12345, 12345), 0);
    EXPECT_EQ(images.find(key), nullptr) << "another user's";
}

TEST_F(Images, ThatFailLeaveNothing) {
    const auto failed = images.make(key, {}, [](image::Writer& writer) -> Status {
        TRY(writer.begin_file("file", {}));
        return fail({.what = "the archive is damaged"});
    });
    EXPECT_EQ(error_of(failed).what, "the archive is damaged");
    EXPECT_TRUE(names("cache").empty());
    EXPECT_TRUE(names("fallback").empty());
}

TEST_F(Images, AreMadeElsewhereIfTheCacheCannotBeWritten) {
    const PackageImages unwritable({.directory = work / "missing", .fallback = work / "fallback"});
    const auto made = good(unwritable.make(
        key, {}, [](image::Writer& writer) { return writer.add_directory("d", {.mode = 0755}); }));
    EXPECT_TRUE(made->lookup(made->root(), "d"));
    EXPECT_EQ(names("fallback"), std::vector{key.file_name()});
    EXPECT_NE(unwritable.find(key), nullptr);
}

TEST_F(Images, OfManyThreadsAreAllWhole) {
    good(in_parallel(8, 64, [&](std::size_t number) -> Status {
        const ImageKey own{.archive = std::string(64, static_cast<char>('a' + number % 4)),
                           .compression = {},
                           .block_size = 4096};
        TRY(images.make(own, {}, [](image::Writer& writer) { return writer.add_directory("d", {}); }));
        return images.find(own) ? Status() : Status(fail({.what = "not found"}));
    }));
    EXPECT_EQ(names("cache").size(), 4U);
}

TEST_F(Images, AreVerifiedAndRemoved) {
    good(add("content"));
    const auto size = fs::file_size(file());
    const auto damaged = work / "cache" / (std::string(64, 'd') + "-zstd3-128K.1.sqfs");
    std::ofstream(damaged) << "no image";
    std::ofstream(work / "cache/.new-1-1") << "a build that runs";
    std::ofstream(work / "cache/notes.txt") << "not ours";
    EXPECT_EQ(images_in(work / "cache").files, 3U);
    const auto verified = good(verify_images(work / "cache", 2));
    EXPECT_EQ(verified.good.files, 1U);
    EXPECT_EQ(verified.good.bytes, size);
    EXPECT_EQ(verified.damaged, std::vector<fs::path>{damaged});
    EXPECT_FALSE(fs::exists(damaged));
    EXPECT_EQ(good(remove_images(work / "cache", std::chrono::hours(1))).removed.files, 0U);
    for (const auto& name : std::vector<std::string>{key.file_name(), ".new-1-1", "notes.txt"}) {
        const std::array old = {timespec{.tv_sec = 1, .tv_nsec = 0}, timespec{.tv_sec = 1, .tv_nsec = 0}};
        EXPECT_EQ(utimensat(AT_FDCWD, (work / "cache" / name).c_str(), old.data(), 0), 0);
    }
    EXPECT_NE(images.find(key), nullptr); // now it was used
    EXPECT_EQ(good(remove_images(work / "cache", std::chrono::hours(1))).removed.files, 1U);
    EXPECT_TRUE(fs::exists(file()));
    {
        const auto build = good(lock_for_reading(work / "cache"));
        const auto removed = good(remove_images(work / "cache", std::chrono::hours(0)));
        EXPECT_TRUE(removed.in_use);
        EXPECT_EQ(removed.removed.files, 0U);
    }
    const auto removed = good(remove_images(work / "cache", std::chrono::hours(0)));
    EXPECT_FALSE(removed.in_use);
    EXPECT_EQ(removed.removed.files, 1U);
    EXPECT_EQ(in_order(names("cache")), (std::set<std::string>{".lock", "notes.txt"}));
}

TEST_F(Images, AreListedWithTheirLastUse) {
    good(add("content"));
    std::ofstream(work / "cache/.new-1-1") << "a build that runs";
    const std::array old = {timespec{.tv_sec = 7, .tv_nsec = 0}, timespec{.tv_sec = 7, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), old.data(), 0), 0);
    auto listed = image_files_in(work / "cache");
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0].path, file());
    EXPECT_EQ(listed[0].bytes, fs::file_size(file()));
    EXPECT_EQ(listed[0].last_use, 7);
    EXPECT_NE(images.find(key), nullptr);
    EXPECT_GT(image_files_in(work / "cache").at(0).last_use, 7);
}

TEST_F(Images, OfASiteAreOnlyRead) {
    good(add("content"));
    const OthersImages site{.directory = work / "site", .owner = geteuid()};
    fs::rename(work / "cache", site.directory);
    make("cache");
    const auto of_site = site.directory / key.file_name();
    const std::array old = {timespec{.tv_sec = 7, .tv_nsec = 0}, timespec{.tv_sec = 7, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, of_site.c_str(), old.data(), 0), 0);
    const PackageImages user({.directory = work / "cache", .others = {site}, .fallback = work / "fallback"});
    EXPECT_NE(user.find(key), nullptr);
    EXPECT_EQ(image_files_in(site.directory).at(0).last_use, 7);
    EXPECT_TRUE(names("cache").empty());
    EXPECT_EQ(images_in(site).files, 1U);
    EXPECT_EQ(good(verify_images(site, 2)).good.files, 1U);

    ASSERT_EQ(chmod(of_site.c_str(), 0664), 0);
    EXPECT_EQ(user.find(key), nullptr) << "a group can write to it";
    ASSERT_EQ(chmod(of_site.c_str(), 0644), 0);
    const auto whole = good(read_file(of_site));
    std::ofstream(of_site, std::ios::trunc) << whole.substr(0, whole.size() - 1) + "?";
    testing::internal::CaptureStderr();
    EXPECT_EQ(user.find(key), nullptr);
    EXPECT_TRUE(testing::internal::GetCapturedStderr().contains(of_site.string()));
    EXPECT_EQ(good(verify_images(site, 2)).damaged, std::vector{of_site});
    EXPECT_TRUE(fs::exists(of_site)) << "it is not ours to remove";
}

TEST_F(Images, OfASiteBelongToItsOwner) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    good(add("content"));
    fs::rename(work / "cache", work / "site");
    make("cache");
    constexpr uid_t owner = 12345;
    ASSERT_EQ(chown((work / "site" / key.file_name()).c_str(), owner, owner), 0);
    const auto found_with = [&](uid_t trusted) {
        const PackageImages user({.directory = work / "cache",
                                  .others = {{.directory = work / "site", .owner = trusted}},
                                  .fallback = work / "fallback"});
        return user.find(key) != nullptr;
    };
    EXPECT_TRUE(found_with(owner));
    EXPECT_FALSE(found_with(owner + 1));
    EXPECT_FALSE(found_with(0));
}

TEST_F(Images, ForASiteCanBeReadByAll) {
    good(add("content"));
    EXPECT_EQ(test::mode_of(file()), 0600U);
    const PackageImages site({.directory = work / "cache", .fallback = work / "fallback", .mode = 0644});
    EXPECT_NE(site.find(key), nullptr);
    EXPECT_EQ(test::mode_of(file()), 0644U) << "made before";
    fs::remove(file());
    good(site.make(key, {}, [](image::Writer& writer) { return writer.add_directory("d", {}); }));
    EXPECT_EQ(test::mode_of(file()), 0644U);
}

} // namespace
} // namespace containerize::packages
