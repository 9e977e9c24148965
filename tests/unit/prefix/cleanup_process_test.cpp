#include "../temporary.h"
#include "prefix/cleanup_process.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using test::TemporaryDirectory;

TEST(CleanupProcess, RemovesWhatIsNotFinished) {
    const TemporaryDirectory directory;
    directory.write("tree/a/b", "");
    fs::create_directories(directory.path() / "empty/inner");
    directory.write("full/file", "");
    {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory.path() / "tree");
        cleanup->remove_directory_later(directory.path() / "empty");
        cleanup->remove_directory_later(directory.path() / "empty/inner"); // the last one is removed first
        cleanup->remove_directory_later(directory.path() / "full");
        EXPECT_TRUE(fs::exists(directory.path() / "tree"));
    }
    EXPECT_FALSE(fs::exists(directory.path() / "tree"));
    EXPECT_FALSE(fs::exists(directory.path() / "empty"));
    EXPECT_TRUE(fs::exists(directory.path() / "full/file"));
}

TEST(CleanupProcess, KeepsWhatIsFinished) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    directory.write("staging/file", "");
    {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory.path() / "env");
        cleanup->remove_tree_later(directory.path() / "staging");
        cleanup->keep_all_but(directory.path() / "staging");
    }
    EXPECT_TRUE(fs::exists(directory.path() / "env/file"));
    EXPECT_FALSE(fs::exists(directory.path() / "staging"));
}

TEST(CleanupProcess, OutlivesAKilledBuilder) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    const pid_t builder = fork();
    ASSERT_GE(builder, 0);
    if (builder == 0) {
        auto cleanup = CleanupProcess::start();
        cleanup->remove_tree_later(directory.path() / "env");
        kill(getpid(), SIGKILL);
    }
    waitpid(builder, nullptr, 0);
    for (int i = 0; i < 500 && fs::exists(directory.path() / "env"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(fs::exists(directory.path() / "env"));
}

} // namespace

} // namespace containerize::prefix
