#include "../happens.h"
#include "../temporary.h"
#include "install/janitor.h"
#include "runtime/build_namespace.h"
#include "runtime/namespace.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::install {

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

TEST(Janitor, EndsWhatStillRunsInTheBuildsNamespaceBeforeItRemoves) {
    const TemporaryDirectory directory;
    const fs::path made = directory.path() / "prefix";
    auto janitor = Janitor::start();
    auto space = runtime::BuildNamespace::create();
    ASSERT_TRUE(space) << to_string(space.error());
    // Like a worker of a killed build: in a process group of its own, and it recreates its directory.
    const pid_t worker = fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
        setsid();
        closefrom(STDERR_FILENO + 1); // among them the janitor's socket
        if (runtime::join_namespaces(space->pid()) != 0) _exit(1);
        for (;;)
            mkdir(made.c_str(), 0755);
    }
    EXPECT_TRUE(test::happens([&] { return fs::exists(made); }));
    janitor->end_processes_first(space->pid());
    janitor->remove_directory_later(made);
    // The worker is our child: until we wait for it, it exists, but in no namespace.
    { const auto ended = std::move(janitor); }
    EXPECT_FALSE(fs::exists(made));
    int status = 0;
    const bool ended = test::happens([&] { return waitpid(worker, &status, WNOHANG) == worker; });
    EXPECT_TRUE(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!ended) kill(worker, SIGKILL); // it would be busy for ever
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

} // namespace containerize::install
