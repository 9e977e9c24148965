#include "build/command_environments.h"
#include "conda/cache_directory.h"
#include "core/entries.h"
#include "good.h"
#include "temporary.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

namespace containerize::build {

namespace {

using test::error_of;
using test::good;
using test::mode_of;
using test::TemporaryDirectory;

const std::string key(32, 'a');
const std::string other_key(32, 'b');
constexpr std::uint64_t no_limit = 1ULL << 40U;

Time at(int second) {
    return Time(std::chrono::seconds(second));
}

CommandEnvironment environment(const std::string& of, std::uint64_t bytes, int last_use) {
    return {
        .directory = {}, .key = of, .packages = {}, .bytes = bytes, .built = at(0), .last_use = at(last_use)};
}

using Positions = std::vector<std::size_t>;

class Cache {
public:
    /// As a build does.
    ClaimedEnvironment build(const std::string& of, bool anew = false, std::uint64_t limit = no_limit) {
        auto claimed = good(environments.claim(of, {"numpy"}, anew));
        EXPECT_FALSE(claimed.complete);
        finish(claimed.directory);
        EXPECT_TRUE(environments.share(claimed, limit));
        return claimed;
    }

    static void finish(const fs::path& directory) {
        fs::create_directories(directory / "env/bin");
        std::ofstream(directory / "env/containerize.json") << "{}";
        std::ofstream(directory / "env/env.sqfs") << std::string(1000, 'x');
    }

    [[nodiscard]] std::vector<fs::path> directories() const {
        std::vector<fs::path> found;
        for (const auto& one : good(environments.list()))
            found.push_back(one.directory);
        return found;
    }

    TemporaryDirectory place;
    CommandEnvironments environments{place / "parent/exec"};
};

} // namespace

TEST(EnvironmentsToRemove, AreTheLeastRecentlyUsedOnes) {
    const std::vector all = {environment("a", 10, 3), environment("b", 10, 1), environment("c", 10, 2)};
    EXPECT_EQ(environments_to_remove(all, 30), Positions{});
    EXPECT_EQ(environments_to_remove(all, 29), (Positions{1}));
    EXPECT_EQ(environments_to_remove(all, 10), (Positions{1, 2}));
    EXPECT_EQ(environments_to_remove(all, 0), (Positions{1, 2, 0}));
    EXPECT_EQ(environments_to_remove({}, 0), Positions{});
}

TEST(EnvironmentsToRemove, AreNotInUse) {
    std::vector all = {environment("a", 10, 1), environment("b", 10, 2), environment("c", 10, 3)};
    all[0].in_use = true;
    EXPECT_EQ(environments_to_remove(all, 20), (Positions{1}));
    EXPECT_EQ(environments_to_remove(all, 0), (Positions{1, 2}));
}

TEST(EnvironmentsToRemove, AreThoseThatWereBuiltAnewFirst) {
    std::vector all = {environment("a", 10, 1), environment("b", 10, 9), environment("b", 10, 5)};
    all[2].built = at(4);
    EXPECT_EQ(environments_to_remove(all, no_limit), (Positions{1}));
    EXPECT_EQ(environments_to_remove(all, 10), (Positions{1, 0}));
    all[1].in_use = true;
    EXPECT_EQ(environments_to_remove(all, no_limit), Positions{});
}

TEST(CommandEnvironments, AreUsedAgain) {
    Cache cache;
    EXPECT_TRUE(cache.directories().empty());
    const auto built = cache.build(key);
    EXPECT_EQ(mode_of(cache.place / "parent/exec"), 0700U);
    EXPECT_EQ(mode_of(built.directory), 0700U);
    EXPECT_EQ(built.prefix(), built.directory / "env");
    const auto again = good(cache.environments.claim(key, {"numpy"}, false));
    EXPECT_TRUE(again.complete);
    EXPECT_EQ(again.directory, built.directory);
    const auto other = good(cache.environments.claim(other_key, {"pandas"}, false));
    EXPECT_FALSE(other.complete);
    EXPECT_NE(other.directory, built.directory);
}

TEST(CommandEnvironments, AreListedWithoutSecrets) {
    Cache cache;
    auto claimed =
        good(cache.environments.claim(key, {"x @ https://me:hidden-word@host/x.whl", "numpy"}, false));
    EXPECT_TRUE(good(cache.environments.list()).empty()); // it is not complete yet
    Cache::finish(claimed.directory);
    EXPECT_TRUE(cache.environments.share(claimed, no_limit));
    auto list = good(cache.environments.list());
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].packages, (std::vector<std::string>{"x @ https://****@host/x.whl", "numpy"}));
    EXPECT_GE(list[0].bytes, 1000U);
    EXPECT_TRUE(list[0].in_use);
    claimed.lock.file.reset();
    EXPECT_FALSE(good(cache.environments.list())[0].in_use);
    EXPECT_FALSE(good(read_file(list[0].directory / "about.json")).contains("hidden-word"));
}

TEST(CommandEnvironments, AreBuiltAnewBesideThoseInUse) {
    Cache cache;
    auto first = cache.build(key);
    auto second = cache.build(key, true);
    EXPECT_NE(first.directory, second.directory);
    EXPECT_TRUE(quiet::exists(first.prefix()));
    EXPECT_EQ(good(cache.environments.claim(key, {}, false)).directory, second.directory);
    first.lock.file.reset();
    const auto other = cache.build(other_key);
    EXPECT_FALSE(quiet::exists(first.directory));
    EXPECT_TRUE(quiet::exists(second.directory));
}

TEST(CommandEnvironments, MakeRoomForNewOnes) {
    Cache cache;
    { const auto first = cache.build(key); }
    auto second = cache.build(other_key, false, 1);
    EXPECT_EQ(cache.directories(), std::vector{second.directory}); // itself is in use, though it is too large
    const auto third = cache.build(std::string(32, 'c'), false, 1);
    EXPECT_EQ(cache.directories().size(), 2U);
}

TEST(CommandEnvironments, AreNotWhatAKilledBuildLeft) {
    Cache cache;
    { const auto unfinished = good(cache.environments.claim(key, {}, false)); }
    const auto built = good(cache.environments.claim(key, {}, false));
    EXPECT_FALSE(built.complete);
    std::error_code failed;
    const auto names = names_in(cache.place / "parent/exec", failed);
    EXPECT_EQ(names, (std::set<std::string>{".lock", built.directory.filename()}));
}

TEST(CommandEnvironments, AreNotOtherDirectoriesInTheSamePlace) {
    const Cache cache;
    const auto named = key + "-backup";
    for (const auto& name : {std::string("2024-backup"), named, std::string(".removed-x")})
        cache.place.write("parent/exec/" + name + "/file", "mine");
    fs::permissions(cache.place / "parent/exec", fs::perms(0700));
    const auto empty = cache.place / "parent/exec" / (other_key + "-abcdef");
    const auto left = cache.place / "parent/exec" / (".removed-" + key + "-abcdef");
    fs::create_directory(empty);
    fs::create_directory(left);
    EXPECT_EQ(good(cache.environments.remove(std::chrono::hours(0))).number, 0U);
    for (const auto& name : {std::string("2024-backup"), named, std::string(".removed-x")}) {
        std::error_code failed;
        EXPECT_EQ(names_in(cache.place / "parent/exec" / name, failed), std::set<std::string>{"file"});
    }
    EXPECT_FALSE(quiet::exists(empty));
    EXPECT_FALSE(quiet::exists(left));
}

TEST(CommandEnvironments, ThatCannotBeLockedAreNoReasonToWait) {
    Cache cache;
    { const auto built = cache.build(key); }
    const auto first = cache.directories().front();
    fs::remove(first / "lock");
    fs::create_symlink("elsewhere", first / "lock");
    EXPECT_NE(cache.build(key).directory, first);
    EXPECT_TRUE(quiet::exists(first));
}

TEST(CommandEnvironments, AreRemovedIfTheyWereUsedInTheFuture) {
    Cache cache;
    fs::path directory;
    { directory = cache.build(key).directory; }
    fs::last_write_time(directory / "lock", fs::file_time_type::clock::now() + std::chrono::hours(48));
    EXPECT_EQ(good(cache.environments.remove(std::chrono::hours(1))).number, 0U);
    EXPECT_EQ(good(cache.environments.remove(std::chrono::hours(0))).number, 1U);
    EXPECT_FALSE(quiet::exists(directory));
}

TEST(CommandEnvironments, AreRemovedIfTheyAreNotInUse) {
    Cache cache;
    { const auto unused = cache.build(key); }
    const auto used = cache.build(other_key);
    auto removed = good(cache.environments.remove(std::chrono::hours(24)));
    EXPECT_EQ(removed.number + removed.in_use, 0U);
    removed = good(cache.environments.remove(std::chrono::hours(0)));
    EXPECT_EQ(removed.number, 1U);
    EXPECT_EQ(removed.in_use, 1U);
    EXPECT_GE(removed.bytes, 1000U);
    EXPECT_EQ(cache.directories(), std::vector{used.directory});
}

TEST(CommandEnvironments, CanBeListedWhereNothingCanBeWritten) {
    if (geteuid() == 0) GTEST_SKIP() << "root can write everywhere";
    Cache cache;
    { const auto built = cache.build(key); }
    const auto directory = cache.place / "parent/exec";
    fs::permissions(directory, fs::perms(0500));
    for (const bool has_lock : {true, false}) {
        if (has_lock) fs::permissions(directory / ".lock", fs::perms(0400));
        EXPECT_EQ(cache.directories().size(), 1U);
        fs::permissions(directory, fs::perms(0700));
        fs::remove(directory / ".lock");
        fs::permissions(directory, fs::perms(0500));
    }
    fs::permissions(directory, fs::perms(0700));
}

TEST(CommandEnvironments, AreNotKeptWhereAnotherUserCanReplaceThem) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
    const TemporaryDirectory place;
    const auto cache = place / "cache";
    const auto chosen = conda::environments_in(cache);
    const auto parent = chosen.parent_path();
    const CommandEnvironments environments(chosen);
    Cache::finish(good(environments.claim(key, {}, false)).directory);
    EXPECT_EQ(good(environments.list()).size(), 1U);

    constexpr uid_t other_user = 12345;
    ASSERT_EQ(lchown(parent.c_str(), other_user, static_cast<gid_t>(-1)), 0);
    const auto expect_refused = [&] {
        EXPECT_TRUE(good(environments.list()).empty());
        const auto error = error_of(environments.claim(key, {}, false));
        EXPECT_EQ(error.fault, Fault::input);
        EXPECT_EQ(error.where, parent.string());
        EXPECT_EQ(error.why, "it belongs to another user");
    };
    expect_refused();
    // A link of this user leads to our own directory.
    ASSERT_EQ(lchown(parent.c_str(), geteuid(), static_cast<gid_t>(-1)), 0);
    fs::rename(parent, place / "moved");
    fs::create_directory_symlink(place / "moved", parent);
    EXPECT_EQ(good(environments.list()).size(), 1U);
    ASSERT_EQ(lchown(parent.c_str(), other_user, static_cast<gid_t>(-1)), 0);
    expect_refused();
}

TEST(CommandEnvironments, NeedADirectoryOfTheirOwn) {
    const Cache cache;
    fs::create_directories(cache.place / "parent/exec");
    fs::permissions(cache.place / "parent/exec", fs::perms(0755));
    const auto error = error_of(cache.environments.claim(key, {}, false));
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(error.why, "other users can access it");
}

} // namespace containerize::build
