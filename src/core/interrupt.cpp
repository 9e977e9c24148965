#include "core/interrupt.h"

#include <atomic>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace containerize {

namespace {

// Signal handlers can only reach globals.
std::atomic<int> received{0};
int pipe_ends[2] = {-1, -1};

void on_signal(int number) {
    const int saved = errno;
    int none = 0;
    // This byte is never read, so that the pipe stays readable for every thread that polls it.
    if (received.compare_exchange_strong(none, number)) [[maybe_unused]]
        const auto written = write(pipe_ends[1], "!", 1);
    errno = saved;
}

} // namespace

void catch_interrupts() {
    static_assert(std::atomic<int>::is_always_lock_free);
    if (pipe_ends[0] < 0 && pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
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
    return received.load() != 0;
}

int interrupt_signal() {
    return received.load();
}

int interrupt_fd() {
    return pipe_ends[0];
}

std::unexpected<Error> fail_interrupted() {
    return fail({.what = "interrupted"});
}

} // namespace containerize
