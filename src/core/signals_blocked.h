// Blocks all signals of a thread for a while.
#pragma once

#include <csignal>

namespace containerize {

/// While one exists, this thread gets no signals. A child that is forked meanwhile has them blocked from the
/// start, however late it first runs.
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
