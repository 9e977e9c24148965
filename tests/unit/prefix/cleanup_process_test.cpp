#include "../happens.h"
#include "../temporary.h"
#include "prefix/cleanup_process.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using test::TemporaryDirectory;

TEST(CleanupProcess, RemovesWhatIsNotFinished) {
    const TemporaryDirectory directory;
    directory.write("tree/a/b", "");
    fs::create_directories(directory / "empty/inner");
    directory.write("full/file", "");
    {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory / "tree");
        cleanup->remove_directory_later(directory / "empty");
        cleanup->remove_directory_later(directory / "empty/inner"); // the last one is removed first
        cleanup->remove_directory_later(directory / "full");
        EXPECT_TRUE(fs::exists(directory / "tree"));
    }
    EXPECT_FALSE(fs::exists(directory / "tree"));
    EXPECT_FALSE(fs::exists(directory / "empty"));
    EXPECT_TRUE(fs::exists(directory / "full/file"));
}

TEST(CleanupProcess, KeepsWhatIsFinished) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    directory.write("staging/file", "");
    directory.write("other/file", "");
    {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory / "env");
        cleanup->remove_tree_later(directory / "staging");
        cleanup->keep_all_but({directory / "staging", directory / "other"});
    }
    EXPECT_TRUE(fs::exists(directory / "env/file"));
    EXPECT_FALSE(fs::exists(directory / "staging"));
    EXPECT_FALSE(fs::exists(directory / "other"));
}

TEST(CleanupProcess, OutlivesAKilledBuilder) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    const pid_t builder = fork();
    ASSERT_GE(builder, 0);
    if (builder == 0) {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory / "env");
        kill(getpid(), SIGKILL);
    }
    waitpid(builder, nullptr, 0);
    EXPECT_TRUE(test::happens([&] { return !fs::exists(directory / "env"); }));
}

} // namespace

} // namespace containerize::prefix
