#include "util/process.h"

#include "core/fd.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "util/child.h"
#include "util/log.h"
#include "util/redact.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace containerize {

namespace {

constexpr std::size_t output_limit = std::size_t{1} << 20U;
/// The report of pip for the largest environments has a few MiB.
constexpr std::size_t captured_limit = std::size_t{64} << 20U;
constexpr std::size_t line_limit = std::size_t{64} << 10U;

/// Returns whether it takes more.
using OnData = std::function<bool(std::string_view)>;
using OnLine = std::function<void(std::string_view)>;

/// Splits the data from a pipe into lines, for the log and the caller, and keeps the end of it.
class LineReader {
public:
    explicit LineReader(const OnLine& on_line) : on_line_(on_line) {}

    bool add(std::string_view data) {
        kept_ += data;
        // Rarely, because each time a whole megabyte moves.
        if (kept_.size() > 2 * output_limit) kept_.erase(0, kept_.size() - output_limit);
        // pip and uv draw progress with carriage returns: each state is a line.
        constexpr std::string_view ends = "\r\n";
        for (auto end = data.find_first_of(ends); end != std::string_view::npos;
             end = data.find_first_of(ends)) {
            line_ += data.substr(0, end);
            flush();
            data.remove_prefix(end + 1);
        }
        line_ += data;
        // A program that writes no newlines must not fill the memory.
        if (line_.size() > line_limit) flush();
        return true;
    }

    /// The kept output, for messages. Its last line may have no newline.
    std::string finish() {
        flush();
        if (kept_.size() > output_limit) kept_.erase(0, kept_.size() - output_limit);
        return redacted(kept_);
    }

private:
    void flush() {
        if (line_.empty()) return;
        log::detail(line_);
        if (on_line_) on_line_(redacted(line_));
        line_.clear();
    }

    const OnLine& on_line_;
    std::string line_, kept_;
};

/// Our end of a child's pipe, and where its data goes.
struct Stream {
    Fd fd;
    OnData sink;
};

/// Reads what is there, up to a limit: a child that never pauses must not keep interrupts out. Returns false
/// at the end of the stream, or if its sink takes no more.
bool drain(const Stream& stream) {
    std::array<char, 1U << 16U> buffer{};
    for (int reads = 0; reads < 16; ++reads) {
        const ssize_t got = read(stream.fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 && errno == EAGAIN;
        if (!stream.sink({buffer.data(), static_cast<std::size_t>(got)})) return false;
    }
    return true;
}

/// Waits until a stream is readable or an interrupt comes, but not longer than `longest`.
void wait_for(const std::vector<Stream>& streams, std::chrono::nanoseconds longest) {
    std::vector<pollfd> polled;
    // After an interrupt its descriptor stays readable, and polling it again would be a busy loop.
    if (!interrupted()) polled.push_back({interrupt_fd(), POLLIN, 0});
    for (const auto& stream : streams)
        if (stream.fd) polled.push_back({stream.fd.get(), POLLIN, 0});
    const timespec timeout{0, longest.count()};
    ppoll(polled.data(), polled.size(), &timeout, nullptr);
}

/// Follows the child until it has ended, and returns its exit code.
Result<int> follow(Child& child, std::vector<Stream>& streams) {
    using namespace std::chrono_literals;
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> kill_at;
    for (auto pause = 1ms;;) {
        if (interrupted() && !kill_at) {
            child.signal_group(SIGTERM);
            kill_at = Clock::now() + 5s;
        } else if (kill_at && Clock::now() > *kill_at) {
            child.signal_group(SIGKILL);
        }
        bool open = false;
        for (auto& stream : streams) {
            if (stream.fd && !drain(stream)) stream.fd.reset();
            open = open || stream.fd;
        }
        // The streams do not tell this: the child may close them and go on, and what it left in the
        // background may keep them open.
        if (const auto code = child.ended()) {
            child.signal_group(SIGKILL);
            for (const auto& stream : streams)
                if (stream.fd) drain(stream);
            if (interrupted()) return fail_interrupted();
            return *code;
        }
        // Most programs end right after their streams: look again soon, then less and less often.
        wait_for(streams, open ? 100ms : pause);
        if (!open) pause = std::min(pause * 2, 50ms);
    }
}

Result<std::string> program_of(const Command& command, const Environment& environment) {
    const auto& name = command.argv.front();
    if (name.find('/') != std::string::npos) return name;
    if (const auto found = find_program(name, search_path(environment))) return found->string();
    return fail({.what = "cannot start `" + name + "`", .why = "it is not on PATH"});
}

class IgnoredSignals {
public:
    explicit IgnoredSignals(const std::vector<int>& numbers) {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        for (const int number : numbers)
            sigaction(number, &ignore, &before_[number]);
    }
    IgnoredSignals(const IgnoredSignals&) = delete;
    IgnoredSignals& operator=(const IgnoredSignals&) = delete;
    ~IgnoredSignals() {
        for (const auto& [number, action] : before_)
            sigaction(number, &action, nullptr);
    }

private:
    std::map<int, struct sigaction> before_;
};

struct Pipe {
    Fd reader, writer;
};

Result<Pipe> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot create a pipe");
    // Only our end: programs do not expect EAGAIN from stdout.
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return Pipe{Fd(ends[0]), Fd(ends[1])};
}

/// In the foreground without `outputs`.
Result<Child> start(const Command& command, std::optional<Child::Streams> outputs) {
    if (interrupted()) return fail_interrupted();
    const Environment environment = command.environment ? *command.environment : current_environment();
    auto program = TRY(program_of(command, environment));
    log::detail("$ " + redacted_command(command.argv));
    return Child::start(command, program, environment, outputs);
}

/// If `on_errors` is empty, both outputs share one pipe, in the order in which they were written.
Result<int> execute(const Command& command, const OnData& on_output, const OnData& on_errors) {
    std::vector<Stream> streams;
    auto output = TRY(make_pipe());
    streams.push_back({std::move(output.reader), on_output});
    Fd error_writer;
    if (on_errors) {
        auto errors = TRY(make_pipe());
        streams.push_back({std::move(errors.reader), on_errors});
        error_writer = std::move(errors.writer);
    }
    const Child::Streams outputs{.output = output.writer.get(),
                                 .errors = error_writer ? error_writer.get() : output.writer.get()};
    auto child = TRY(start(command, outputs));
    // Otherwise the streams would never end.
    output.writer.reset();
    error_writer.reset();
    return follow(child, streams);
}

} // namespace

Result<Outcome> run(const Command& command) {
    LineReader lines(command.on_line);
    auto code = execute(command, [&](std::string_view data) { return lines.add(data); }, {});
    auto output = lines.finish();
    if (!code) return fail(std::move(code.error()));
    return Outcome{.exit_code = *code, .output = std::move(output)};
}

Result<Outcome> capture(const Command& command) {
    LineReader errors(command.on_line);
    Outcome outcome;
    bool fits = true;
    const auto keep = [&](std::string_view data) {
        fits = fits && data.size() <= captured_limit - outcome.output.size();
        if (fits) outcome.output += data;
        return fits; // otherwise the program gets SIGPIPE
    };
    auto code = execute(command, keep, [&](std::string_view data) { return errors.add(data); });
    outcome.errors = errors.finish();
    if (!code) return fail(std::move(code.error()));
    if (!fits)
        return fail({.what = "cannot use the output of `" + redacted_command(command.argv) + "`",
                     .why = "it is larger than 64 MiB"});
    outcome.exit_code = *code;
    return outcome;
}

Result<int> run_in_foreground(const Command& command, Keyboard keyboard) {
    auto child = TRY(start(command, std::nullopt));
    const bool is_for_us = keyboard == Keyboard::interrupts_us;
    const IgnoredSignals ignored(is_for_us ? std::vector{SIGQUIT} : std::vector{SIGINT, SIGQUIT});
    // The program gets the terminal's SIGINT itself.
    child.wait_for_end_or(termination_fd());
    if (!child.ended() && termination_signal() != 0) child.signal_group(termination_signal());
    const int code = child.wait();
    if (is_for_us && interrupted()) return fail_interrupted();
    return code;
}

std::string tail(std::string_view text, std::size_t lines) {
    while (text.ends_with('\n'))
        text.remove_suffix(1);
    if (text.empty() || lines == 0) return {};
    auto start = text.size();
    for (std::size_t count = 0; start > 0; --start)
        if (text[start - 1] == '\n' && ++count == lines) break;
    std::string shown(text.substr(start));
    replace_all(shown, "\n", "\n  ");
    return "  " + shown;
}

} // namespace containerize
