#include "session/start_guard.h"

#include "core/signals_blocked.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::session {

namespace {

constexpr int patience_ms = 10000;

// For the signal handler.
int signs_of_life_to = -1;

void give_sign_of_life(int) {
    const int error_number = errno;
    [[maybe_unused]] const auto written = write(signs_of_life_to, ".", 1);
    errno = error_number;
}

void set_timer(time_t seconds) {
    const timeval period{.tv_sec = seconds, .tv_usec = 0};
    const itimerval timer{.it_interval = period, .it_value = period};
    setitimer(ITIMER_REAL, &timer, nullptr);
}

// Outlives a session that is killed, whose other processes may hold the lock. All signals are blocked: one
// that asks all of the session's processes to end must not end only this one.
[[noreturn]] void guard(const Fd& reader) {
    std::array<char, 64> buffer;
    pollfd sign{.fd = reader.get(), .events = POLLIN, .revents = 0};
    while (poll(&sign, 1, patience_ms) != 0)
        if (read(reader.get(), buffer.data(), buffer.size()) <= 0) break;
    flock(STDIN_FILENO, LOCK_UN);
    _exit(0);
}

} // namespace

Status StartGuard::begin(const Fd& report) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot create a pipe");
    const Fd reader(ends[0]);
    writer_.reset(ends[1]);
    child_ = fork_blocked();
    if (child_ < 0) return fail_errno("cannot start a process");
    if (child_ == 0) {
        writer_.reset();
        close(report.get());
        guard(reader);
    }
    signs_of_life_to = writer_.get();
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = give_sign_of_life;
    sigaction(SIGALRM, &action, nullptr);
    set_timer(1);
    return {};
}

void StartGuard::end() {
    const auto child = std::exchange(child_, 0);
    if (child <= 0) return;
    set_timer(0);
    std::signal(SIGALRM, SIG_DFL);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    writer_.reset();
}

} // namespace containerize::session
