#include "util/child.h"

#include "core/core_dumps.h"
#include "core/fd.h"
#include "core/signals_blocked.h"

#include <csignal>
#include <iterator>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize {

namespace {

/// The step that failed between fork and exec, and its errno.
struct Failure {
    enum Step { in_child, working_directory, other } step;
    int error_number;
};

/// All that the child needs, allocated before fork: locks that other threads held at that moment, such as
/// malloc's, are never released in the child.
struct Plan {
    const Command& command;
    const char* program;
    const char* const* argv;
    const char* const* environment;
    std::optional<Child::Streams> streams;
    int to_parent;
    int to_child; ///< the parent's end of the socket, which the child closes
    pid_t parent;
};

[[noreturn]] void give_up(const Plan& plan, Failure::Step step, int error_number) {
    const Failure failure{step, error_number};
    [[maybe_unused]] const auto written = write(plan.to_parent, &failure, sizeof failure);
    _exit(127);
}

/// Sets up the standard streams.
void take_streams(const Plan& plan) {
    const auto& streams = *plan.streams;
    const int input = streams.input < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : streams.input;
    if (input < 0 || dup2(input, 0) < 0 || dup2(streams.output, 1) < 0 || dup2(streams.errors, 2) < 0)
        give_up(plan, Failure::other, errno);
}

/// Ends the child if the parent dies first, which nobody may notice before the guard is there.
void wait_for_parent(const Plan& plan) {
    close(plan.to_child);
    char ready = 0;
    ssize_t got = 0;
    while ((got = read(plan.to_parent, &ready, sizeof ready)) < 0 && errno == EINTR) {
    }
    if (got != sizeof ready) _exit(127);
}

/// The handlers are the parent's: they would tell the parent of signals that only the child gets. exec resets
/// them, but ignored signals stay ignored: a program must die of a broken pipe.
void reset_handlers() {
    for (int number = 1; number <= SIGRTMAX; ++number) {
        struct sigaction action {};
        if (sigaction(number, nullptr, &action) != 0) continue;
        if (action.sa_handler != SIG_IGN || number == SIGPIPE) signal(number, SIG_DFL);
    }
}

/// All signals are blocked until the handlers are reset.
[[noreturn]] void become_program(const Plan& plan) {
    if (plan.streams) setpgid(0, 0);
    wait_for_parent(plan);
    reset_handlers();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.streams) take_streams(plan);
    if (plan.command.in_child)
        if (const int error_number = plan.command.in_child(); error_number != 0)
            give_up(plan, Failure::in_child, error_number);
    if (!plan.command.working_directory.empty() && chdir(plan.command.working_directory.c_str()) != 0)
        give_up(plan, Failure::working_directory, errno);
    // After in_child, because a change of credentials, as in joining a user namespace, may clear it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // If the parent died before that call, nobody sends the signal.
    if (getppid() != plan.parent) _exit(127);
    restore_core_limit();
    // POSIX has execve() take pointers to non-const for historical reasons only; it modifies nothing.
    execve(plan.program, const_cast<char* const*>(plan.argv), const_cast<char* const*>(plan.environment));
    give_up(plan, Failure::other, errno);
}

/// Joins the child's process group, and kills it when our process dies: PR_SET_PDEATHSIG reaches only the
/// child, not the compilers that pip started. All signals are blocked, so that it can wait for SIGUSR1, and
/// no signal to the group ends it.
[[noreturn]] void guard_group(pid_t group, pid_t parent) {
    setpgid(0, group);
    // A pipe that it held open would never end for its reader.
    closefrom(0);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    // A program may send its own group any signal, so only a change of the parent counts.
    while (getppid() == parent)
        sigwaitinfo(&awaited, nullptr);
    kill(-group, SIGKILL);
    _exit(0);
}

[[noreturn]] void become_copy(const std::function<int()>& work, pid_t parent) noexcept {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    _exit(work());
}

std::unexpected<Error> describe(const Failure& failure, const Command& command, const std::string& program) {
    if (failure.step == Failure::working_directory)
        return fail_errno("cannot start `" + program + "` in this directory",
                          command.working_directory.string(), failure.error_number);
    if (failure.step == Failure::in_child)
        return fail_errno("cannot enter the build's namespace to start `" + program + "`", {},
                          failure.error_number);
    return fail_errno("cannot start `" + program + "`", {}, failure.error_number);
}

} // namespace

Result<Child> Child::start(const Command& command, const std::string& program, const Environment& environment,
                           std::optional<Streams> streams) {
    std::vector<const char*> argv;
    for (const auto& argument : command.argv)
        argv.push_back(argument.c_str());
    argv.push_back(nullptr);
    std::vector<std::string> assignments;
    for (const auto& [name, value] : environment)
        assignments.push_back(name + "=" + value);
    std::vector<const char*> variables;
    for (const auto& assignment : assignments)
        variables.push_back(assignment.c_str());
    variables.push_back(nullptr);

    // The parent says when the child may go on. exec closes the child's end, and the parent reads end of
    // file; otherwise it reads a Failure.
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno("cannot create a socket");
    const Fd to_child(ends[0]);
    Fd to_parent(ends[1]);
    const Plan plan{.command = command,
                    .program = program.c_str(),
                    .argv = argv.data(),
                    .environment = variables.data(),
                    .streams = streams,
                    .to_parent = to_parent.get(),
                    .to_child = to_child.get(),
                    .parent = getpid()};
    const pid_t pid = fork_blocked();
    if (pid < 0) return fail_errno("cannot start `" + program + "`");
    if (pid == 0) become_program(plan);
    Child child(pid);
    if (streams) {
        // Both parent and child do this: whichever comes first, the group exists before it is used.
        setpgid(pid, pid);
        child.guard_ = fork_blocked();
        if (child.guard_ < 0) return fail_errno("cannot start `" + program + "`");
        if (child.guard_ == 0) guard_group(pid, plan.parent);
        setpgid(child.guard_, pid);
    }
    to_parent.reset();
    // The child may have been killed; its exit code says so.
    if (send(to_child.get(), "", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        return fail_errno("cannot start `" + program + "`");

    Failure failure{};
    ssize_t got = 0;
    while ((got = read(to_child.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
    }
    if (got == sizeof failure) return describe(failure, command, program);
    return child;
}

Result<Child> Child::start_copy(const std::function<int()>& work) {
    const pid_t parent = getpid();
    const pid_t pid = fork_blocked();
    if (pid < 0) return fail_errno("cannot start a process");
    if (pid == 0) become_copy(work, parent);
    return Child(pid);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), guard_(std::exchange(other.guard_, -1)),
      exit_code_(other.exit_code_) {}

Child::~Child() {
    if (pid_ <= 0) return;
    const auto wait_for = [](pid_t pid) {
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    };
    // The guard keeps the group's number from being reused, even after the child was reaped.
    if (guard_ > 0 || !exit_code_) signal_group(SIGKILL);
    if (!exit_code_) wait_for(pid_);
    if (guard_ > 0) {
        kill(guard_, SIGKILL);
        wait_for(guard_);
    }
}

void Child::signal_group(int number) const {
    kill(guard_ > 0 ? -pid_ : pid_, number);
}

std::optional<int> Child::ended() {
    return ended(WNOHANG);
}

int Child::wait() {
    for (;;)
        if (const auto code = ended(0)) return *code;
}

void Child::wait_for_end_or(int fd) {
    while (!ended()) {
        // Before Linux 5.3 there are no pidfds, so look again and again.
        const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
        pollfd polled[] = {{process.get(), POLLIN, 0}, {fd, POLLIN, 0}};
        constexpr int look_again_ms = 50;
        poll(polled, std::size(polled), process ? -1 : look_again_ms);
        if (polled[1].revents != 0) return;
    }
}

std::optional<int> Child::ended(int options) {
    if (exit_code_) return exit_code_;
    int status = 0;
    if (waitpid(pid_, &status, options) != pid_) return std::nullopt;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return exit_code_;
}

} // namespace containerize
