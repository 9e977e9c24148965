#include "prefix/cleanup_process.h"

#include "core/fd_message.h"
#include "core/filesystem.h"
#include "core/signals_blocked.h"
#include "core/staging.h"
#include "core/text.h"
#include "launch/namespace.h"

#include <algorithm>
#include <cerrno>
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
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

constexpr char remove_tree_verb = 'T';
constexpr char remove_directory_verb = 'D';
constexpr char sweep_verb = 'S';
constexpr char keep_verb = 'K';
constexpr char end_processes_verb = 'P';
constexpr std::size_t longest_message = 2UL * (PATH_MAX + 1);

/// A child of the killed builder may still have the builder's lock for a moment, until it starts its program
/// or ends. Locks that are held longer are another build's.
bool is_locked_by_another(const Fd& directory) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 2s;
    while (flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return false; // a filesystem without locks
        if (std::chrono::steady_clock::now() > deadline) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

// Another build may have locked the directory in the meantime: builds lock their prefix (prefix.cpp).
void remove_unlocked(const char* directory) {
    const Fd fd(open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && is_locked_by_another(fd)) return;
    rmdir(directory);
}

/// As launch::mount_namespace_of() has it.
std::string name_of(const Fd& mount_namespace) {
    std::error_code failed;
    return std::filesystem::read_symlink(path_of(mount_namespace), failed).string();
}

void end_processes_in(const Fd& mount_namespace) {
    using namespace std::chrono_literals;
    const auto name = name_of(mount_namespace);
    if (name.empty()) return;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    for (auto pause = 1ms; std::chrono::steady_clock::now() < deadline; pause = std::min(pause * 2, 100ms)) {
        const auto left = launch::processes_in(name);
        if (!left || left->empty()) return;
        for (const pid_t pid : *left)
            kill(pid, SIGKILL);
        std::this_thread::sleep_for(pause);
    }
}

/// The cleanup process's main function. A message is a verb with a path, with several that end with NUL, or
/// with a namespace's descriptor. All signals are blocked: one that ends the builder must not end this
/// process, too.
[[noreturn]] void run_cleanup(Fd builder) {
    setsid();
    prctl(PR_SET_NAME, "containerize-jn");
    // Inherited descriptors would count against the limit of open files, and removing a tree takes one per
    // level.
    close_all_but(builder.get());
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
            for (const auto tree : split(std::string_view(message.text).substr(1), '\0'))
                if (!tree.empty()) tasks.push_back(remove_tree_verb + std::string(tree));
            continue;
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
    const pid_t pid = fork_blocked();
    if (pid < 0) return fail_errno("cannot start the clean-up process");
    if (pid == 0) {
        ours.reset();
        run_cleanup(std::move(theirs));
    }
    // Now that it is ready it has its own session, so killing the builder's process group spares it.
    theirs.reset();
    const bool ready = !receive_message(ours.get(), longest_message).text.empty();
    CleanupProcess process(std::move(ours), pid);
    if (!ready) return fail({.what = "cannot start the clean-up process", .why = "it has ended"});
    return process;
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
    // Guard against killing the user's own processes: the namespace must be another one.
    if (mount_namespace && name_of(mount_namespace) != launch::mount_namespace_of("self"))
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
void CleanupProcess::keep_all_but(const std::vector<std::filesystem::path>& trees) {
    std::string list;
    for (const auto& tree : trees)
        list += tree.string() + '\0';
    tell(keep_verb, list);
}

} // namespace containerize::prefix
