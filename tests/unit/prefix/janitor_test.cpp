#include "../temporary.h"
#include "prefix/janitor.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using test::TemporaryDirectory;

TEST(Janitor, RemovesWhatIsNotFinished) {
    const TemporaryDirectory directory;
    directory.write("tree/a/b", "");
    fs::create_directories(directory.path() / "empty/inner");
    directory.write("full/file", "");
    {
        auto janitor = Janitor::start();
        janitor->remove_tree_later(directory.path() / "tree");
        janitor->remove_directory_later(directory.path() / "empty");
        janitor->remove_directory_later(directory.path() / "empty/inner"); // the last one is removed first
        janitor->remove_directory_later(directory.path() / "full");
        EXPECT_TRUE(fs::exists(directory.path() / "tree"));
    }
    EXPECT_FALSE(fs::exists(directory.path() / "tree"));
    EXPECT_FALSE(fs::exists(directory.path() / "empty"));
    EXPECT_TRUE(fs::exists(directory.path() / "full/file"));
}

TEST(Janitor, KeepsWhatIsFinished) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    directory.write("staging/file", "");
    {
        auto janitor = Janitor::start();
        janitor->remove_tree_later(directory.path() / "env");
        janitor->remove_tree_later(directory.path() / "staging");
        janitor->keep_all_but(directory.path() / "staging");
    }
    EXPECT_TRUE(fs::exists(directory.path() / "env/file"));
    EXPECT_FALSE(fs::exists(directory.path() / "staging"));
}

TEST(Janitor, OutlivesAKilledBuilder) {
    const TemporaryDirectory directory;
    directory.write("env/file", "");
    const pid_t builder = fork();
    ASSERT_GE(builder, 0);
    if (builder == 0) {
        auto janitor = Janitor::start();
        janitor->remove_tree_later(directory.path() / "env");
        kill(getpid(), SIGKILL);
    }
    waitpid(builder, nullptr, 0);
    for (int i = 0; i < 500 && fs::exists(directory.path() / "env"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(fs::exists(directory.path() / "env"));
}

} // namespace

} // namespace containerize::prefix
