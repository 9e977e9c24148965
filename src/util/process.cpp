#include "util/process.h"

#include "util/fd.h"
#include "util/interrupt.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize {

namespace {

constexpr std::size_t output_kept = 1U << 20U;
constexpr auto patience_after_interrupt = std::chrono::seconds(5);

/// Gathers what a program says, and hands on whole lines.
class LineReader {
public:
    explicit LineReader(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}

    void take(std::string_view data) {
        for (const char c : data) {
            // pip and uv draw progress with carriage returns: each state is a line to us.
            if (c == '\n' || c == '\r')
                flush();
            else
                line_.push_back(c);
        }
    }
    void flush() {
        if (line_.empty()) return;
        on_line_(line_);
        line_.clear();
    }

private:
    std::function<void(std::string_view)> on_line_;
    std::string line_;
};

struct Pipe {
    Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe");
    return Pipe{.read_end = Fd(ends[0]), .write_end = Fd(ends[1])};
}

/// A started child; whoever lets go of it without waiting kills its whole group.
class Child {
public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ > 0) {
            kill(-pid_, SIGKILL);
            wait();
        }
    }
    void signal(int number) const { kill(-pid_, number); }
    int wait() {
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }

private:
    pid_t pid_;
};

[[noreturn]] void become(const Command& command, const std::string& program, int out, int err, int failure,
                         pid_t parent) {
    setpgid(0, 0);
    // If the builder is killed, its children must not go on writing into a staging directory that is being
    // removed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const auto give_up = [failure](int error_number) {
        [[maybe_unused]] const auto written = write(failure, &error_number, sizeof error_number);
        _exit(127);
    };
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD})
        std::signal(number, SIG_DFL);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0)
        give_up(errno);
    if (command.in_child)
        if (const int error_number = command.in_child()) give_up(error_number);
    if (!command.working_directory.empty() && chdir(command.working_directory.c_str()) != 0) give_up(errno);

    std::vector<char*> arguments;
    for (const auto& argument : command.argv)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    std::vector<std::string> variables;
    std::vector<char*> environment;
    if (command.environment) {
        for (const auto& [name, value] : *command.environment)
            variables.push_back(name + "=" + value);
        for (auto& variable : variables)
            environment.push_back(variable.data());
        environment.push_back(nullptr);
    }
    execve(program.c_str(), arguments.data(), command.environment ? environment.data() : environ);
    give_up(errno);
    _exit(127);
}

// Reads both streams to their end. An interrupt asks the child to end, and after a while makes it.
Status pump(Child& child, const Fd& out, const Fd& err, const std::function<void(std::string_view)>& on_out,
            const std::function<void(std::string_view)>& on_err) {
    std::array<pollfd, 3> events{pollfd{.fd = out.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = interrupt_fd(), .events = POLLIN, .revents = 0}};
    std::array<char, 1U << 16U> buffer;
    std::chrono::steady_clock::time_point deadline;
    bool asked = false;
    while (events[0].fd >= 0 || events[1].fd >= 0) {
        if (asked && std::chrono::steady_clock::now() > deadline) child.signal(SIGKILL);
        if (poll(events.data(), events.size(), asked ? 100 : -1) < 0) {
            if (errno == EINTR) continue;
            return fail_errno("cannot wait for a program");
        }
        if ((events[2].revents & POLLIN) != 0) {
            child.signal(SIGTERM);
            asked = true;
            deadline = std::chrono::steady_clock::now() + patience_after_interrupt;
            events[2].fd = -1;
        }
        for (const std::size_t i : {0U, 1U}) {
            if (events[i].fd < 0 || events[i].revents == 0) continue;
            const auto got = read(events[i].fd, buffer.data(), buffer.size());
            if (got > 0)
                (i == 0 ? on_out : on_err)({buffer.data(), static_cast<std::size_t>(got)});
            else if (got == 0 || errno != EINTR)
                events[i].fd = -1;
        }
    }
    if (asked) return fail_interrupted();
    return {};
}

Result<int> execute(const Command& command, const std::function<void(std::string_view)>& on_out,
                    const std::function<void(std::string_view)>& on_err) {
    const auto cannot_start = [&](int error_number) {
        return fail_errno("cannot run " + command.argv.front(), {}, error_number);
    };
    std::string program = command.argv.front();
    if (program.find('/') == std::string::npos) {
        const Environment current = command.environment ? *command.environment : current_environment();
        const auto path = current.find("PATH");
        const auto found = find_program(program, path == current.end() ? "/usr/bin:/bin" : path->second);
        if (!found) return cannot_start(ENOENT);
        program = found->string();
    }
    std::string shown;
    for (const auto& argument : command.argv)
        shown += " " + argument;
    log::detail("$" + shown);

    auto out = make_pipe();
    auto err = make_pipe();
    auto failure = make_pipe();
    if (!out || !err || !failure) return fail_errno("cannot make a pipe");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return cannot_start(errno);
    if (pid == 0)
        become(command, program, out->write_end.get(), err->write_end.get(), failure->write_end.get(),
               parent);
    setpgid(pid, pid); // here too: whichever comes first
    Child child(pid);
    out->write_end.reset();
    err->write_end.reset();
    failure->write_end.reset();
    // The pipe closes when exec succeeds, and carries an errno when it does not.
    int error_number = 0;
    ssize_t told = 0;
    do
        told = read(failure->read_end.get(), &error_number, sizeof error_number);
    while (told < 0 && errno == EINTR);
    if (told == static_cast<ssize_t>(sizeof error_number)) return cannot_start(error_number);

    if (auto done = pump(child, out->read_end, err->read_end, on_out, on_err); !done)
        return fail(std::move(done.error()));
    return child.wait();
}

} // namespace

Environment current_environment() {
    Environment variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (const auto equals = text.find('='); equals != std::string_view::npos && equals > 0)
            variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return variables;
}

Result<Outcome> run(const Command& command) {
    Outcome outcome;
    LineReader lines([&](std::string_view line) {
        log::detail("  " + std::string(line));
        if (command.on_line) command.on_line(line);
    });
    const auto take = [&](std::string_view data) {
        outcome.output.append(data);
        if (outcome.output.size() > 2 * output_kept)
            outcome.output.erase(0, outcome.output.size() - output_kept);
        lines.take(data);
    };
    auto code = execute(command, take, take);
    lines.flush();
    if (!code) return fail(std::move(code.error()));
    outcome.exit_code = *code;
    return outcome;
}

Result<Outcome> capture(const Command& command) {
    Outcome outcome;
    LineReader lines([](std::string_view line) { log::detail("  " + std::string(line)); });
    auto code = execute(
        command, [&](std::string_view data) { outcome.output.append(data); },
        [&](std::string_view data) { lines.take(data); });
    lines.flush();
    if (!code) return fail(std::move(code.error()));
    outcome.exit_code = *code;
    return outcome;
}

std::optional<std::filesystem::path>
find_program(std::string_view name, std::string_view path,
             const std::function<bool(const std::filesystem::path&)>& accept) {
    for (bool more = true; more;) {
        const auto colon = path.find(':');
        const std::filesystem::path directory(path.substr(0, colon));
        more = colon != std::string_view::npos;
        if (more) path.remove_prefix(colon + 1);
        // An empty element means the working directory: nothing that a build should run lies there by
        // accident.
        if (!directory.is_absolute()) continue;
        auto candidate = directory / name;
        struct stat info {};
        if (stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
            access(candidate.c_str(), X_OK) == 0 && (!accept || accept(candidate)))
            return candidate;
    }
    return std::nullopt;
}

std::string tail(std::string_view text, std::size_t lines) {
    while (text.ends_with('\n'))
        text.remove_suffix(1);
    std::size_t start = text.size();
    for (std::size_t count = 0; start > 0; --start)
        if (text[start - 1] == '\n' && ++count == lines) break;
    std::string indented;
    while (start < text.size()) {
        const auto end = std::min(text.find('\n', start), text.size());
        indented.append(indented.empty() ? "  " : "\n  ").append(text.substr(start, end - start));
        start = end + 1;
    }
    return indented;
}

} // namespace containerize
