#include "core/signals_blocked.h"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>

namespace containerize {
namespace {

bool asked_to_end = false;

/// From now on, each new process is asked to end before it does anything.
void ask_children_to_end() {
    pthread_atfork(nullptr, nullptr, [] {
        if (asked_to_end) kill(getpid(), SIGTERM);
    });
    asked_to_end = true;
}

int status_of(pid_t child) {
    if (child == 0) _exit(7);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

bool is_blocked(int number) {
    sigset_t now;
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
    return sigismember(&now, number) == 1;
}

} // namespace

TEST(SignalsBlocked, AChildThatIsAskedToEndBeforeItRuns) {
    ask_children_to_end();
    const int ended = status_of(fork());
    EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGTERM);
    const int went_on = status_of(fork_blocked());
    EXPECT_TRUE(WIFEXITED(went_on) && WEXITSTATUS(went_on) == 7);
    asked_to_end = false;
    EXPECT_FALSE(is_blocked(SIGTERM)) << "in the parent";
}

TEST(SignalsBlocked, OnlyDuringItsLifetime) {
    {
        const SignalsBlocked blocked;
        EXPECT_TRUE(is_blocked(SIGTERM));
    }
    EXPECT_FALSE(is_blocked(SIGTERM));
}

} // namespace containerize
