#include "install/janitor.h"

#include "util/filesystem.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::install {

namespace {

constexpr char remove_tree_verb = 'T';
constexpr char remove_directory_verb = 'D';
constexpr char keep_verb = 'K';

// A new build may have claimed the directory meanwhile: builds lock their prefix (prefix.cpp).
void remove_unclaimed(const char* directory) {
    const Fd fd(open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
    rmdir(directory);
}

/// Messages are a verb, a path and a NUL.
[[noreturn]] void clean_up_after(Fd pipe) {
    setsid();
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
        std::signal(number, SIG_IGN);
    prctl(PR_SET_NAME, "containerize-jn");
    // The builder's caller may wait for the end of its output.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        dup2(null, stream);

    std::string told;
    std::array<char, 4096> buffer;
    for (;;) {
        const auto got = read(pipe.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        told.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::vector<std::string> tasks;
    for (std::size_t start = 0, end = 0; (end = told.find('\0', start)) != std::string::npos;
         start = end + 1) {
        std::string message = told.substr(start, end - start);
        if (message.front() == keep_verb) {
            tasks.clear();
            message.front() = remove_tree_verb;
        }
        tasks.push_back(std::move(message));
    }
    for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
        if (task->front() == remove_directory_verb)
            remove_unclaimed(task->c_str() + 1);
        else [[maybe_unused]]
            const auto removed = remove_tree(task->substr(1));
    }
    _exit(0);
}

} // namespace

Result<Janitor> Janitor::start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe");
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start the process that cleans up");
    if (pid == 0) {
        writer.reset();
        clean_up_after(std::move(reader));
    }
    return Janitor(std::move(writer), pid);
}

Janitor::Janitor(Janitor&& other) noexcept
    : pipe_(std::move(other.pipe_)), pid_(std::exchange(other.pid_, -1)) {}

Janitor::~Janitor() {
    if (pid_ < 0) return;
    pipe_.reset();
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Janitor::tell(char verb, const std::filesystem::path& path) {
    const std::string message = verb + path.string() + '\0';
    // It cannot be gone: it ends only after this end of the pipe closes.
    [[maybe_unused]] const auto written = write(pipe_.get(), message.data(), message.size());
}

void Janitor::remove_tree_later(const std::filesystem::path& path) {
    tell(remove_tree_verb, path);
}
void Janitor::remove_directory_later(const std::filesystem::path& path) {
    tell(remove_directory_verb, path);
}
void Janitor::keep_all_but(const std::filesystem::path& staging) {
    tell(keep_verb, staging);
}

} // namespace containerize::install
