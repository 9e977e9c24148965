#include "prefix/cleanup_process.h"

#include "core/fd_message.h"
#include "core/filesystem.h"
#include "core/staging.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

constexpr char remove_tree_verb = 'T';
constexpr char remove_directory_verb = 'D';
constexpr char sweep_verb = 'S';
constexpr char keep_verb = 'K';
constexpr char end_processes_verb = 'P';
constexpr std::size_t longest_message = PATH_MAX + 1;

// Another build may have locked the directory in the meantime: builds lock their prefix (prefix.cpp).
void remove_unlocked(const char* directory) {
    const Fd fd(open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
    rmdir(directory);
}

/// False for processes of other users and for zombies, whose namespace cannot be read.
bool is_in(const std::filesystem::path& process, const struct stat& mount_namespace) {
    struct stat its {};
    return stat((process / "ns/mnt").c_str(), &its) == 0 && its.st_ino == mount_namespace.st_ino &&
           its.st_dev == mount_namespace.st_dev;
}

std::vector<pid_t> processes_in(const struct stat& mount_namespace) {
    std::vector<pid_t> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename();
        pid_t pid = 0;
        const auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (problem == std::errc() && *rest == '\0' && is_in(entry->path(), mount_namespace))
            found.push_back(pid);
    }
    return found;
}

// A killed process may run on briefly and recreate a directory that was already removed. So wait until none
// is left, but not forever: a process may hang on an unreachable filesystem. The open `mount_namespace` keeps
// its inode number from being reused.
void end_processes_in(const Fd& mount_namespace) {
    using namespace std::chrono_literals;
    struct stat info {};
    if (!mount_namespace || fstat(mount_namespace.get(), &info) != 0) return;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    for (auto pause = 1ms; std::chrono::steady_clock::now() < deadline; pause = std::min(pause * 2, 100ms)) {
        const auto left = processes_in(info);
        if (left.empty()) return;
        for (const pid_t pid : left)
            kill(pid, SIGKILL);
        std::this_thread::sleep_for(pause);
    }
}

/// Leaves the standard streams open.
void close_all_but(const Fd& file) {
    const auto kept = static_cast<unsigned>(file.get());
    if (kept > STDERR_FILENO + 1) close_range(STDERR_FILENO + 1, kept - 1, 0);
    close_range(kept + 1, ~0U, 0);
}

/// The cleanup process's main function. A message is a verb with a path, or with a namespace's descriptor.
[[noreturn]] void run_cleanup(Fd builder) {
    setsid();
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
        std::signal(number, SIG_IGN);
    prctl(PR_SET_NAME, "containerize-jn");
    // Inherited descriptors would count against the limit of open files, and removing a tree takes one per
    // level.
    close_all_but(builder);
    // The builder's caller may be reading its output until end of file.
    if (const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC)); null)
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            dup2(null.get(), stream);
    send_message(builder.get(), "ready", -1);

    std::vector<std::string> tasks;
    Fd mount_namespace;
    for (;;) {
        auto message = receive_message(builder.get(), longest_message);
        if (message.text.empty()) break;
        const char verb = message.text.front();
        if (verb == end_processes_verb) {
            mount_namespace = std::move(message.file);
            continue;
        }
        if (verb == keep_verb) {
            tasks.clear();
            message.text.front() = remove_tree_verb;
        }
        tasks.push_back(std::move(message.text));
    }
    end_processes_in(mount_namespace);
    for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
        if (task->front() == remove_directory_verb)
            remove_unlocked(task->c_str() + 1);
        else if (task->front() == sweep_verb)
            sweep_staging(task->substr(1));
        else [[maybe_unused]]
            const auto removed = remove_tree(task->substr(1));
    }
    _exit(0);
}

} // namespace

Result<CleanupProcess> CleanupProcess::start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno("cannot create a socket");
    Fd theirs(ends[0]);
    Fd ours(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start the clean-up process");
    if (pid == 0) {
        ours.reset();
        run_cleanup(std::move(theirs));
    }
    // Now that it is ready it has its own session, so killing the builder's process group spares it.
    theirs.reset();
    receive_message(ours.get(), longest_message);
    return CleanupProcess(std::move(ours), pid);
}

CleanupProcess::CleanupProcess(CleanupProcess&& other) noexcept
    : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}

CleanupProcess::~CleanupProcess() {
    if (pid_ < 0) return;
    socket_.reset();
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void CleanupProcess::tell(char verb, const std::string& what, int file) {
    // The cleanup process cannot have exited: it waits for this end of the socket to close.
    [[maybe_unused]] const bool told = send_message(socket_.get(), verb + what, file);
}

void CleanupProcess::end_processes_first(pid_t in_namespace) {
    const auto process = std::filesystem::path("/proc") / std::to_string(in_namespace);
    const Fd mount_namespace(open((process / "ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    // Guard against killing the user's own processes: the namespace must be another one.
    if (mount_namespace && fstat(mount_namespace.get(), &info) == 0 && !is_in("/proc/self", info))
        tell(end_processes_verb, {}, mount_namespace.get());
}
void CleanupProcess::remove_tree_later(const std::filesystem::path& path) {
    tell(remove_tree_verb, path.string());
}
void CleanupProcess::remove_directory_later(const std::filesystem::path& path) {
    tell(remove_directory_verb, path.string());
}
void CleanupProcess::sweep_staging_later(const std::filesystem::path& parent) {
    tell(sweep_verb, parent.string());
}
void CleanupProcess::keep_all_but(const std::filesystem::path& staging) {
    tell(keep_verb, staging.string());
}

} // namespace containerize::prefix
