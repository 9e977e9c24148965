#include "environments/byte_code_workers.h"

#include "core/fd.h"
#include "core/interrupt.h"
#include "core/printable.h"
#include "core/read_write.h"
#include "core/text.h"
#include "core/thread.h"
#include "util/child.h"
#include "util/timings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace containerize::environments {

namespace {

/// Answers requests on its standard streams. A request is two sizes, a path, and a source; an answer is its
/// kind (c: byte-code, r: the reason for none, u: Python is too old), whether it is the interpreter's last
/// one, its size, and the answer itself. Python 2 must be able to parse this.
///
/// marshal marks what has more than one reference, so the state of the interpreter shows in byte-code:
/// - Strings of one character are shared by all code, and stay interned if they ever were.
/// - A set in two functions is one object, unless a string in it equals one that was interned before (from
///   Python 3.12 on, names of all earlier sources are). The second time that a source is compiled, all of
///   its strings are interned. The same is true of slices, which are constants since Python 3.14.
/// - Sources with other encodings import codecs: that interpreter ends.
constexpr const char* worker_program = R"(
import sys
sys.path.pop(0) # the working directory

def serve():
    import _imp, encodings, gc, marshal
    from importlib._bootstrap_external import MAGIC_NUMBER
    gc.disable() # code has no cycles
    for character in map(chr, range(256)):
        sys.intern(character)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    code_type = type(serve.__code__)
    hash_key = int.from_bytes(MAGIC_NUMBER, 'little')

    def state():
        return len(sys.modules), len(encodings._cache)

    def answer(kind, is_last, text):
        answers.write(kind + (b'1' if is_last else b'0') + len(text).to_bytes(8, 'little') + text)
        answers.flush()

    def repeats_set(constants, seen):
        for constant in constants:
            kind = type(constant)
            if kind is code_type or kind is tuple:
                if repeats_set(constant.co_consts if kind is code_type else constant, seen):
                    return True
            elif kind is frozenset or kind is slice:
                if constant in seen:
                    return True
                seen.add(constant)
        return False

    def byte_code(path, source):
        code = compile(source, path, 'exec', 0, True, 0)
        if repeats_set(code.co_consts, set()):
            first, code = code, compile(source, path, 'exec', 0, True, 0)
        unchecked_hash = b'\1\0\0\0' + _imp.source_hash(hash_key, source)
        return MAGIC_NUMBER + unchecked_hash + marshal.dumps(code)

    answer(b'c', False, (MAGIC_NUMBER.hex() + ' ' + sys.implementation.cache_tag).encode())
    fresh = state()
    while True:
        sizes = requests.read(16)
        if len(sizes) < 16:
            return
        path = requests.read(int.from_bytes(sizes[:8], 'little')).decode('utf-8', 'surrogateescape')
        source = requests.read(int.from_bytes(sizes[8:], 'little'))
        try:
            kind, text = b'c', byte_code(path, source)
        except MemoryError:
            raise # says nothing about the source
        except Exception as problem:
            reason = '%s: %s' % (type(problem).__name__, problem)
            kind, text = b'r', reason[:500].encode('utf-8', 'replace')
        answer(kind, state() != fresh, text)

if sys.version_info < (3, 7) or not sys.implementation.cache_tag:
    sys.stdout.write('u1' + 8 * '\0')
else:
    serve()
)";

/// The largest sources of packages have a few MiB. Python takes about a hundred times the size to compile
/// one.
constexpr std::size_t largest_source = std::size_t{16} << 20U;
constexpr std::uint64_t largest_answer = std::uint64_t{256} << 20U;

static_assert(std::endian::native == std::endian::little, "the worker reads and writes little-endian sizes");

struct Greeting {
    bool supported = false;
    std::string magic = {}, cache_tag = {};
};

/// What the environment's Python says becomes part of file names.
Result<Greeting> read_greeting(const std::string& text) {
    const auto words = words_in(text, " ");
    const auto is_plain = [](char c) {
        constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        return plain.find(c) != std::string_view::npos;
    };
    if (words.size() != 2 || !is_hex(words[0], 8) || !std::ranges::all_of(words[1], is_plain))
        return fail({.what = "the environment's Python describes its byte-code in an unknown way",
                     .why = printable(text)});
    return Greeting{.supported = true, .magic = words[0], .cache_tag = words[1]};
}

/// Only the user's Python decides what its sources become: not the variables of whoever builds. -I would also
/// ignore the seed, on which the order of sets depends before Python 3.11.
Environment worker_environment(Environment environment) {
    std::erase_if(environment, [](const auto& variable) { return variable.first.starts_with("PYTHON"); });
    environment["PYTHONHASHSEED"] = "0";
    return environment;
}

std::string size_in_bytes(std::size_t size) {
    const auto number = static_cast<std::uint64_t>(size);
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// One running Python and our end of its socket. To be used in the thread that started it.
class Interpreter {
public:
    static Result<Interpreter> start(const ByteCodeWorkers::Settings& settings);
    Result<ByteCode> compile(std::string_view path, std::string_view source);
    [[nodiscard]] const Greeting& greeting() const { return greeting_; }
    /// False after its last answer, and after a failure.
    [[nodiscard]] bool usable() const { return usable_; }

private:
    using Clock = std::chrono::steady_clock;
    struct Answer {
        char kind = 0;
        std::string text = {};
    };

    Interpreter(Child child, Fd socket, Fd errors, std::chrono::seconds limit)
        : child_(std::move(child)), socket_(std::move(socket)), errors_(std::move(errors)), limit_(limit) {}
    Status greet();
    Status send_all(std::string_view data);
    Status receive_all(char* data, std::size_t size);
    Status wait_until_ready(short events);
    Result<Answer> receive_answer();
    std::unexpected<Error> fail_ended();

    Child child_;
    Fd socket_, errors_;
    Greeting greeting_;
    std::chrono::seconds limit_;
    Clock::time_point deadline_;
    bool usable_ = false;
};

Result<Interpreter> Interpreter::start(const ByteCodeWorkers::Settings& settings) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno("cannot create a socket");
    Fd ours(ends[0]);
    Fd theirs(ends[1]);
    fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    Fd errors(memfd_create("errors", MFD_CLOEXEC));
    if (!errors) return fail_errno("cannot create a file in memory");
    // -B: byte-code of the few modules that it imports must not get into the environment.
    const auto command =
        settings.inside({settings.python, "-s", "-S", "-B", "-W", "ignore", "-c", worker_program});
    const auto environment =
        worker_environment(command.environment ? *command.environment : current_environment());
    auto child = TRY(
        Child::start(command, settings.python, environment,
                     Child::Streams{.output = theirs.get(), .errors = errors.get(), .input = theirs.get()}));
    theirs.reset(); // otherwise the end of the interpreter would not end its answers
    Interpreter interpreter(std::move(child), std::move(ours), std::move(errors), settings.limit);
    TRY(interpreter.greet());
    return interpreter;
}

Status Interpreter::greet() {
    deadline_ = Clock::now() + limit_;
    const auto answer = receive_answer();
    if (!answer) {
        auto error = answer.error();
        if (!interrupted()) error.what = "the environment's Python does not run here";
        return fail(std::move(error));
    }
    if (answer->kind == 'c') greeting_ = TRY(read_greeting(answer->text));
    return {};
}

Result<ByteCode> Interpreter::compile(std::string_view path, std::string_view source) {
    usable_ = false; // until its answer says otherwise
    deadline_ = Clock::now() + limit_;
    auto request = size_in_bytes(path.size()) + size_in_bytes(source.size());
    request += path;
    request += source;
    TRY(send_all(request));
    auto answer = TRY(receive_answer());
    if (answer.kind == 'c') return ByteCode{.pyc = std::move(answer.text), .reason = {}};
    return ByteCode{.pyc = {}, .reason = printable_line(answer.text)};
}

Status Interpreter::wait_until_ready(short events) {
    using std::chrono::milliseconds;
    for (;;) {
        if (interrupted()) return fail_interrupted();
        const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
        if (left <= milliseconds(0))
            return fail({.what = "cannot compile byte-code",
                         .why = "Python takes longer than " + std::to_string(limit_.count()) + " seconds"});
        pollfd polled[] = {{socket_.get(), events, 0}, {interrupt_fd(), POLLIN, 0}};
        if (poll(polled, std::size(polled), static_cast<int>(left.count())) > 0 && polled[0].revents != 0)
            return {};
    }
}

Status Interpreter::send_all(std::string_view data) {
    while (!data.empty()) {
        TRY(wait_until_ready(POLLOUT));
        const ssize_t sent = send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (sent >= 0)
            data.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR)
            return fail_ended();
    }
    return {};
}

Status Interpreter::receive_all(char* data, std::size_t size) {
    while (size > 0) {
        TRY(wait_until_ready(POLLIN));
        const ssize_t got = recv(socket_.get(), data, size, 0);
        if (got > 0) {
            data += got;
            size -= static_cast<std::size_t>(got);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return fail_ended();
        }
    }
    return {};
}

Result<Interpreter::Answer> Interpreter::receive_answer() {
    std::array<char, 2 + sizeof(std::uint64_t)> head{};
    TRY(receive_all(head.data(), head.size()));
    std::uint64_t size = 0;
    std::memcpy(&size, head.data() + 2, sizeof size);
    if (size > largest_answer)
        return fail({.what = "cannot compile byte-code",
                     .why = "Python's answer is larger than " + std::to_string(largest_answer) + " bytes"});
    Answer answer{.kind = head[0], .text = std::string(size, '\0')};
    TRY(receive_all(answer.text.data(), answer.text.size()));
    usable_ = head[1] == '0';
    return answer;
}

/// It has closed its socket, so that it ends now if it has not ended yet.
std::unexpected<Error> Interpreter::fail_ended() {
    child_.wait_for_end_or(interrupt_fd());
    const auto code = child_.ended();
    if (!code) return fail_interrupted();
    const auto said = tail(printable(read_from_start(errors_.get())), 5);
    return fail(
        {.what = "cannot compile byte-code",
         .why = "Python ended with exit code " + std::to_string(*code) + (said.empty() ? "" : "\n" + said)});
}

} // namespace

/// Each thread has one interpreter, because the kernel kills a child when the thread that started it ends.
class ByteCodeWorkers::Implementation {
public:
    explicit Implementation(Settings settings) : settings_(std::move(settings)) {}

    /// Fails if this user may have no more threads; with fewer than asked for, it only takes longer.
    Status start() {
        const auto add_thread = [this] { threads_.emplace_back([this](auto stop) { work(stop); }); };
        while (threads_.size() < std::max(settings_.workers, 1U) && if_threads_are_left(add_thread)) {
        }
        if (threads_.empty())
            return fail({.what = "cannot compile byte-code", .why = "no more threads can be started"});
        greeting_ = TRY(ask<Greeting>([](Interpreter& interpreter) { return interpreter.greeting(); }));
        return {};
    }

    Result<ByteCode> compile(std::string_view path, std::string_view source) {
        return ask<ByteCode>([=](Interpreter& interpreter) { return interpreter.compile(path, source); });
    }

    [[nodiscard]] const Greeting& greeting() const { return greeting_; }

private:
    using Slot = std::optional<Interpreter>;
    using Job = std::function<void(Slot&)>;

    /// Has the question answered in one of the threads.
    template<class Answer, class Question>
    Result<Answer> ask(const Question& question) {
        // Shared, because the thread may still be in set_value() when the answer is here.
        const auto answer = std::make_shared<std::promise<Result<Answer>>>();
        const Job job = [this, answer, &question](Slot& slot) {
            const auto started = ready(slot);
            answer->set_value(started ? Result<Answer>(question(*slot)) : fail(started.error()));
        };
        auto future = answer->get_future();
        {
            const std::lock_guard lock(mutex_);
            jobs_.push_back(job);
        }
        has_jobs_.notify_one();
        return future.get();
    }

    Status ready(Slot& slot) const {
        if (interrupted()) return fail_interrupted();
        if (!slot) slot.emplace(TRY(Interpreter::start(settings_)));
        return {};
    }

    void work(const std::stop_token& stop) {
        Slot slot;
        while (const auto job = next_job(stop)) {
            const timings::Piece piece("compiling");
            job(slot);
            if (slot && !slot->usable()) slot.reset();
        }
    }

    /// Empty at the end.
    Job next_job(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        if (!has_jobs_.wait(lock, stop, [this] { return !jobs_.empty(); })) return {};
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        return job;
    }

    Settings settings_;
    Greeting greeting_;
    std::mutex mutex_;
    std::condition_variable_any has_jobs_;
    std::deque<Job> jobs_;
    std::vector<std::jthread> threads_; ///< the last member, because they use the others
};

ByteCodeWorkers::ByteCodeWorkers(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
ByteCodeWorkers::~ByteCodeWorkers() = default;

Result<std::unique_ptr<ByteCodeWorkers>> ByteCodeWorkers::start(Settings settings) {
    auto implementation = std::make_unique<Implementation>(std::move(settings));
    TRY(implementation->start());
    return std::unique_ptr<ByteCodeWorkers>(new ByteCodeWorkers(std::move(implementation)));
}

bool ByteCodeWorkers::supported() const {
    return implementation_->greeting().supported;
}

const std::string& ByteCodeWorkers::magic() const {
    return implementation_->greeting().magic;
}

const std::string& ByteCodeWorkers::cache_tag() const {
    return implementation_->greeting().cache_tag;
}

Result<ByteCode> ByteCodeWorkers::compile(std::string_view path, std::string_view source) {
    if (!supported())
        return fail({.what = "cannot compile byte-code",
                     .why = "this Python always compares it with its source; Python 3.7 was the first that "
                            "need not"});
    if (source.size() > largest_source)
        return ByteCode{.pyc = {},
                        .reason = "it is larger than " + std::to_string(largest_source >> 20U) + " MiB"};
    auto compiled = implementation_->compile(path, source);
    if (!compiled && !interrupted()) compiled.error().where = path;
    return compiled;
}

} // namespace containerize::environments
