#include "../good.h"
#include "../temporary.h"
#include "launch/launch_plan.h"
#include "prefix/prefix.h"

#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using test::TemporaryDirectory;

std::string message(const std::string& prefix, bool force = false) {
    const auto checked = check_prefix(prefix, force);
    if (checked) return "accepted";
    EXPECT_EQ(checked.error().fault, Fault::input) << prefix;
    return to_string(checked.error());
}

TEST(Prefix, EmptyOrAbsentIsAccepted) {
    const TemporaryDirectory directory;
    const auto empty = directory / "empty";
    fs::create_directory(empty);
    EXPECT_EQ(*check_prefix(empty, false), empty);
    EXPECT_EQ(*check_prefix(empty.string() + "/", false), empty);
    EXPECT_EQ(*check_prefix(directory / "a/b/../c", false), directory / "a/c");
    EXPECT_EQ(message(directory / "with 'quotes\" $and é"), "accepted");
    directory.write("left/.containerize-left-123/x", "");
    EXPECT_EQ(message(directory / "left"), "accepted");
}

TEST(Prefix, LinksAndRelativePathsAreResolved) {
    const TemporaryDirectory directory;
    fs::create_directory(directory / "real");
    fs::create_symlink("real", directory / "link");
    EXPECT_EQ(*check_prefix(directory / "link/env", false), directory / "real/env");
    EXPECT_EQ(*check_prefix("some-new-env", false), fs::current_path() / "some-new-env");
}

TEST(Prefix, UnfitPlacesAreRefused) {
    const TemporaryDirectory directory;
    directory.write("full/data", "");
    directory.write("file", "");
    directory.write(fs::path("env") / launch::manifest_name, "{}");
    const std::string here = directory.path().string();
    const std::pair<std::string, std::string> cases[] = {
        {"", "the prefix is empty"},
        {"a:b", "PATH cannot contain a directory with ':'"},
        {"a\nb", "line break"},
        {here + "/\xFF", "its name is not valid UTF-8"},
        {"/", "an installation cannot use this directory\nChoose a separate directory, such as /env."},
        {"/tmp", "such as /tmp/env."},
        {"/usr/../home", "/home: an installation cannot use this directory"},
        {here + "/" + std::string(161, 'a'),
         "the name of this prefix is too long: it has 161 bytes, and the limit is 160\nChoose a shorter"},
        {here + "/full", "the prefix is not empty: it contains 'data'"},
        {here + "/file", "the prefix is not a directory"},
        {here + "/env", "an installation already exists here\nUse --force to replace it"},
        {here + "/env/inner/deep", "is inside another installation: " + here + "/env"},
    };
    for (const auto& [prefix, expected] : cases)
        EXPECT_TRUE(message(prefix).contains(expected)) << prefix << ": " << message(prefix);
}

TEST(Prefix, HomeIsRefused) {
    const TemporaryDirectory directory;
    const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    setenv("HOME", directory.path().c_str(), 1);
    EXPECT_TRUE(message(directory.path()).contains("an installation cannot use this directory"));
    setenv("HOME", before.c_str(), 1);
}

TEST(Prefix, ForceReplacesInstallationsAlone) {
    const TemporaryDirectory directory;
    directory.write("full/data", "");
    directory.write(fs::path("env") / launch::manifest_name, "{}");
    EXPECT_EQ(message(directory / "env", true), "accepted");
    EXPECT_TRUE(message(directory / "full", true).contains("not empty"));
}

TEST(Prefix, FilesInsideAreHiddenByTheBuild) {
    EXPECT_TRUE(check_outside("/data/r.txt", "/data/env"));
    EXPECT_TRUE(check_outside("/data/env2/r.txt", "/data/env"));
    EXPECT_FALSE(check_outside("/data/env/share/r.txt", "/data/env"));
}

TEST(PrefixLock, MakesDirectoriesAndTakesThemBack) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "a/b/env";
    {
        auto cleanup = CleanupProcess::start();
        const auto lock = test::good(lock_prefix(prefix, *cleanup));
        EXPECT_FALSE(lock.existed);
        EXPECT_TRUE(fs::is_directory(prefix));
    }
    EXPECT_FALSE(fs::exists(directory / "a"));
}

TEST(PrefixLock, LeavesWhatWasThere) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "env";
    fs::create_directory(prefix);
    {
        auto cleanup = CleanupProcess::start();
        const auto lock = test::good(lock_prefix(prefix, *cleanup));
        EXPECT_TRUE(lock.existed);
    }
    EXPECT_TRUE(fs::is_directory(prefix));
}

TEST(PrefixLock, OldCleanupProcessLeavesTheNextBuildsDirectory) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "env";
    auto next = CleanupProcess::start();
    std::optional<CleanupProcess> killed(std::move(*CleanupProcess::start()));
    ASSERT_TRUE(lock_prefix(prefix, *killed)); // this lock ends here, before its cleanup process does
    const auto lock = lock_prefix(prefix, *next);
    ASSERT_TRUE(lock);
    killed.reset();
    EXPECT_TRUE(fs::exists(prefix));
}

TEST(PrefixLock, SecondBuildIsTold) {
    const TemporaryDirectory directory;
    auto cleanup = CleanupProcess::start();
    const auto first = lock_prefix(directory / "env", *cleanup);
    ASSERT_TRUE(first);
    const auto second = test::error_of(lock_prefix(directory / "env", *cleanup));
    const auto us = " (process " + std::to_string(getpid()) + " on ";
    EXPECT_TRUE(second.what.starts_with("another build is using this prefix" + us)) << second.what;
    directory.write(fs::path("env") / launch::manifest_name, "{}");
    const auto refused = test::error_of(lock_prefix(directory / "env", *cleanup));
    EXPECT_TRUE(refused.what.starts_with("another command is changing this installation" + us))
        << refused.what;
    EXPECT_EQ(refused.hint, "Wait for it to end.");
}

TEST(PrefixLock, UnwritablePlaceIsTheUsersMistake) {
    auto cleanup = CleanupProcess::start();
    EXPECT_EQ(test::error_of(lock_prefix("/proc/no/env", *cleanup)).fault, Fault::input);
}

} // namespace

} // namespace containerize::prefix
