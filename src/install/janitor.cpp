#include "install/janitor.h"

#include "util/filesystem.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
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
constexpr char end_processes_verb = 'P';

// A new build may have claimed the directory meanwhile: builds lock their prefix (prefix.cpp).
void remove_unclaimed(const char* directory) {
    const Fd fd(open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
    rmdir(directory);
}

/// "mnt:[4026531841]": the kernel's name of the mount namespace that a process is in. Empty for processes of
/// others and for those that are dead.
std::string mount_namespace_of(const std::filesystem::path& process) {
    std::error_code failed;
    return std::filesystem::read_symlink(process / "ns/mnt", failed).string();
}

std::vector<pid_t> processes_in(std::string_view mount_namespace) {
    std::vector<pid_t> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename();
        pid_t pid = 0;
        const auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (problem == std::errc() && *rest == '\0' && mount_namespace_of(entry->path()) == mount_namespace)
            found.push_back(pid);
    }
    return found;
}

// A signal ends a process only when it is next given a CPU, and until then it may make a directory once more
// that was removed already: so this waits until none is left, though not for ever for one that hangs in a
// lost filesystem.
void end_processes_in(std::string_view mount_namespace) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (auto pause = 1ms; std::chrono::steady_clock::now() < deadline; pause = std::min(pause * 2, 100ms)) {
        const auto left = processes_in(mount_namespace);
        if (left.empty()) return;
        for (const pid_t pid : left)
            kill(pid, SIGKILL);
        std::this_thread::sleep_for(pause);
    }
}

/// Messages are a verb, a path (or a namespace's name) and a NUL.
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
        if (message.front() == end_processes_verb) {
            end_processes_in(std::string_view(message).substr(1));
            continue;
        }
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

void Janitor::tell(char verb, const std::string& what) {
    const std::string message = verb + what + '\0';
    // It cannot be gone: it ends only after this end of the pipe closes.
    [[maybe_unused]] const auto written = write(pipe_.get(), message.data(), message.size());
}

void Janitor::end_processes_first(pid_t in_namespace) {
    const auto name = mount_namespace_of("/proc/" + std::to_string(in_namespace));
    // Never the user's own processes, whatever was made.
    if (!name.empty() && name != mount_namespace_of("/proc/self")) tell(end_processes_verb, name);
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
