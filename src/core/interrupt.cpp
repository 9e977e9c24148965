#include "core/interrupt.h"

#include <atomic>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace containerize {

namespace {

// Signal handlers can only reach globals.
struct Event {
    std::atomic<int> signal{0}; ///< the first one
    int pipe_ends[2] = {-1, -1};

    bool prepare() { return pipe_ends[0] >= 0 || pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0; }
    void set(int number) {
        int none = 0;
        // This byte is never read, so that the pipe stays readable for every thread that polls it.
        if (signal.compare_exchange_strong(none, number)) [[maybe_unused]]
            const auto written = write(pipe_ends[1], "!", 1);
    }
};

Event interruption, termination;

void on_signal(int number) {
    const int saved = errno;
    interruption.set(number);
    if (number != SIGINT) termination.set(number);
    errno = saved;
}

} // namespace

void catch_interrupts() {
    static_assert(std::atomic<int>::is_always_lock_free);
    if (!interruption.prepare() || !termination.prepare()) return;
    sigset_t caught;
    sigemptyset(&caught);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
        sigaddset(&caught, number);
        action = {};
        action.sa_handler = on_signal;
        action.sa_flags = SA_RESTART;
        sigaction(number, &action, nullptr);
    }
    // Who blocks them for itself also blocks them for what it starts.
    sigprocmask(SIG_UNBLOCK, &caught, nullptr);
    // Makes writes beyond the file-size limit fail with EFBIG. Not SIG_IGN, which programs that are started
    // would inherit.
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    sigaction(SIGXFSZ, &nothing, nullptr);
}

bool interrupted() {
    return interruption.signal.load() != 0;
}

int interrupt_signal() {
    return interruption.signal.load();
}

int interrupt_fd() {
    return interruption.pipe_ends[0];
}

int termination_signal() {
    return termination.signal.load();
}

int termination_fd() {
    return termination.pipe_ends[0];
}

std::unexpected<Error> fail_interrupted() {
    return fail({.what = "interrupted"});
}

} // namespace containerize
