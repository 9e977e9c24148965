// Blocks the signals of a thread, or of a new process.
#pragma once

#include <csignal>

#include <sys/types.h>
#include <unistd.h>

namespace containerize {

/// Blocks all signals of this thread during its lifetime; those that arrive are delivered afterwards.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

/// Like fork(), but the child has all signals blocked from its start, however late it first runs. A child
/// that blocked them itself could get one before.
inline pid_t fork_blocked() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return pid;
}

} // namespace containerize
