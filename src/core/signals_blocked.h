// Blocks the signals of a thread.
#pragma once

#include <csignal>

namespace containerize {

/// Blocks all signals of this thread during its lifetime; those that arrive are delivered afterwards. A child
/// that is forked during it starts with them blocked. Keeps errno.
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

} // namespace containerize
