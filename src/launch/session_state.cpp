#include "launch/session_state.h"

#include "core/fd_message.h"
#include "core/filesystem_magic.h"
#include "core/ownership.h"
#include "core/read_write.h"
#include "core/variables.h"
#include "launch/control_message.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

/// Whether it is on a filesystem of this node that can be written to: on a network filesystem, locks tell
/// nothing about processes on other nodes.
bool has_usable_filesystem(const Fd& directory) {
    struct statfs info {};
    return fstatfs(directory.get(), &info) == 0 &&
           !is_network_magic(static_cast<std::uint32_t>(info.f_type)) && (info.f_flags & ST_RDONLY) == 0;
}

Fd open_own_directory(const std::string& path) {
    auto directory = open_private_directory(path);
    return directory && has_usable_filesystem(directory) ? std::move(directory) : Fd();
}

/// Tries places one after the other, and records why each was rejected.
class StateSearch {
public:
    /// Opens the directory `path`, and makes it if it is missing.
    bool try_path(const std::string& path) {
        found_ = {.fd = open_own_directory(path), .path = path};
        if (found_.fd) return true;
        const PrivateUmask whatever_the_callers;
        const bool made = mkdir(path.c_str(), S_IRWXU) == 0;
        std::string why =
            "it belongs to another user, its mode is not 0700, or its filesystem is read-only or a network's";
        if (!made && errno != EEXIST) why = std::strerror(errno);
        found_.fd = open_own_directory(path); // another rank may have been faster
        if (found_.fd) return true;
        if (made) rmdir(path.c_str());
        reasons_ += (reasons_.empty() ? "" : "; ") + path + ": " + why;
        return false;
    }

    /// Tries names in a directory where everybody may create files.
    bool try_in(const std::string& parent) {
        const std::string usual = parent + "/containerize-" + std::to_string(geteuid());
        return try_path(usual) || try_beside(parent, usual + ".");
    }

    StateDirectory take() { return std::move(found_); }
    [[nodiscard]] const std::string& reasons() const { return reasons_; }

private:
    /// If somebody else has taken the usual name: nobody can take all names that begin with `start`.
    bool try_beside(const std::string& parent, const std::string& start) {
        struct stat taken {};
        if (lstat(start.substr(0, start.size() - 1).c_str(), &taken) != 0) return false;
        if (take_first(parent, start)) return true;
        std::string made = start + "XXXXXX";
        const PrivateUmask whatever_the_callers;
        if (mkdtemp(made.data()) == nullptr) return false;
        // Two processes may have made one each: both then take the first.
        const bool found = take_first(parent, start);
        if (found_.path != made) rmdir(made.c_str());
        return found;
    }

    bool take_first(const std::string& parent, const std::string& start) {
        DIR* listing = opendir(parent.c_str());
        if (listing == nullptr) return false;
        std::string first;
        while (const dirent* entry = readdir(listing)) {
            const std::string path = parent + "/" + static_cast<const char*>(entry->d_name);
            if (path.starts_with(start) && (first.empty() || path < first) && open_own_directory(path))
                first = path;
        }
        closedir(listing);
        if (first.empty()) return false;
        found_ = {.fd = open_own_directory(first), .path = first};
        return static_cast<bool>(found_.fd);
    }

    StateDirectory found_;
    std::string reasons_;
};

const char* absolute_path_in(Variable which) {
    const char* path = value_of(which);
    return path != nullptr && path[0] == '/' ? path : nullptr;
}

/// What the kernel tells about a session's lock.
struct Supervisor {
    bool may_live = true; ///< false only if nobody holds the lock
    pid_t pid = 0;        ///< 0 if it is not visible from here
};

struct flock lock_of(off_t byte, short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return lock;
}

Supervisor supervisor_of(int lock_file) {
    auto lock = lock_of(supervisor_byte, F_WRLCK);
    if (fcntl(lock_file, F_GETLK, &lock) != 0) return {};
    if (lock.l_type == F_UNLCK) return {.may_live = false};
    return {.pid = std::max(lock.l_pid, 0)};
}

} // namespace

Result<StateDirectory> open_state_directory() {
    StateSearch search;
    // Unlike /tmp, this is never shared between a container and its host.
    if (geteuid() == 0 && search.try_path("/run/containerize")) return search.take();
    // A job may inherit this variable from the login node, without the directory.
    if (const char* runtime = absolute_path_in("XDG_RUNTIME_DIR")) {
        struct stat info {};
        if (lstat(runtime, &info) == 0 && is_private_directory(info) &&
            search.try_path(std::string(runtime) + "/containerize"))
            return search.take();
    }
    if (search.try_in("/tmp")) return search.take();
    if (const char* directory = absolute_path_in("TMPDIR"))
        if (search.try_in(directory)) return search.take();
    if (search.try_in("/dev/shm")) return search.take();
    return fail({.what = "there is no usable directory for session state",
                 .why = search.reasons(),
                 .hint = "Set TMPDIR to a directory on this node that you can write to."});
}

bool lock_byte(int fd, off_t byte, short type) {
    const auto lock = lock_of(byte, type);
    return fcntl(fd, F_SETLK, &lock) == 0;
}

bool is_dead(const StateDirectory& state, const std::string& name) {
    const Fd lock(openat(state.fd.get(), (name + "/" + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    // A session without a lock ended before it was ready; nobody is starting one now.
    if (!lock) return errno == ENOENT;
    return !supervisor_of(lock.get()).may_live;
}

bool may_be_ours(const StateDirectory& state, const std::string& name) {
    const Fd lock(openat(state.fd.get(), (name + "/" + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!lock) return false;
    const auto supervisor = supervisor_of(lock.get());
    return supervisor.may_live && supervisor.pid != 0 &&
           ProcessNamespaces::of(supervisor.pid).may_be_in_pid_namespace(own_identity({}).pid_namespace) &&
           supervisor_of(lock.get()).may_live; // it may have died meanwhile
}

namespace {

/// The session in the directory `name`, kept from ending; nullopt if there is none that may be alive.
std::optional<SessionHandle> hold_session(const StateDirectory& state, const std::string& name) {
    if (name.empty()) return std::nullopt;
    SessionHandle session;
    session.directory.reset(openat(state.fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!session.directory) return std::nullopt;
    session.lock.reset(openat(session.directory.get(), lock_name, O_RDWR | O_CLOEXEC));
    if (!session.lock) return std::nullopt;
    // The supervisor write-locks this byte before it ends: then it is too late to enter.
    if (!lock_byte(session.lock.get(), entering_byte, F_RDLCK)) return std::nullopt;
    const auto supervisor = supervisor_of(session.lock.get());
    if (!supervisor.may_live) return std::nullopt;
    session.supervisor = supervisor.pid;
    return session;
}

/// Opens the session's namespaces; returns false if this process cannot enter it.
bool can_be_entered(SessionHandle& session, const SessionIdentity& identity) {
    if (session.supervisor == 0) return false;
    session.namespaces = ProcessNamespaces::of(session.supervisor);
    // This directory may be shared with a container, and the session may be the container's.
    if (!session.namespaces.in_pid_namespace(identity.pid_namespace)) return false;
    // The supervisor may have died before its namespaces were opened, and its pid may be another's.
    return supervisor_of(session.lock.get()).pid == session.supervisor;
}

} // namespace

std::optional<SessionHandle> find_session(const StateDirectory& state, const std::string& root) {
    const auto identity = own_identity(root);
    const auto names = session_names(identity);
    for (const auto& name : {names.shared, names.of_login})
        if (auto session = hold_session(state, name); session && can_be_entered(*session, identity))
            return session;
    const auto own = session_of_link(state, inside_link_name(identity));
    if (!root.empty() && root != root_in_name(own)) return std::nullopt;
    auto session = hold_session(state, own);
    if (session) session->inside = true;
    return session;
}

std::optional<LaunchPlan> read_plan(const SessionHandle& session, const std::string& prefix) {
    const Fd file(openat(session.directory.get(), plan_file_name(prefix).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    auto plan = plan_from_bytes(read_from_start(file.get()));
    if (!plan || plan->prefix != prefix) return std::nullopt;
    return plan;
}

std::string session_of_link(const StateDirectory& state, const std::string& inside_link) {
    std::array<char, 256> name;
    const auto size = readlinkat(state.fd.get(), inside_link.c_str(), name.data(), name.size());
    return {name.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

sockaddr_un control_address(const Fd& directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (path_of(directory) + "/" + control_name)
        .copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    return address;
}

void set_patience(const Fd& socket, time_t seconds) {
    const timeval patience{.tv_sec = seconds, .tv_usec = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

namespace {

Result<std::string> ask(const SessionHandle& session, const ControlRequest& request) {
    const auto no_answer = [](int error_number) {
        auto error = fail_errno("the session does not answer", {}, error_number);
        error.error().hint = "The installation's filesystem may be slow. Try again. If that does not help, "
                             "end the session: pkill -u $USER -f containerize-session";
        return error;
    };
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket) return fail_errno("cannot create a socket");
    set_patience(socket, 60);
    const auto address = control_address(session.directory);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return no_answer(errno);
    if (!is_our_own(socket)) return no_answer(EPERM);
    const auto message = to_message(request);
    if (send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) return no_answer(errno);
    std::string answer(control_message_size, '\0');
    const auto got = recv(socket.get(), answer.data(), answer.size(), 0);
    if (got <= 0) return no_answer(got == 0 ? ECONNRESET : errno);
    answer.resize(static_cast<std::size_t>(got));
    return answer;
}

} // namespace

Result<MountAnswer> request_mount(const SessionHandle& session, const std::string& prefix) {
    auto answer = TRY(ask(session, {.verb = ControlVerb::mount, .prefix = prefix}));
    if (answer == mounted_answer) return MountAnswer::mounted;
    if (answer == stale_answer) return MountAnswer::stale;
    return fail(error_of_answer(answer));
}

Result<std::string> request_statistics(const SessionHandle& session, const std::string& prefix) {
    auto answer = ask(session, {.verb = ControlVerb::statistics, .prefix = prefix});
    if (!answer) return answer;
    if (answer->starts_with('{')) return answer;
    return fail(
        {.what = "the session has no statistics",
         .why = std::move(*answer),
         .where = prefix,
         .hint =
             "There are none for images that the kernel mounts, and none in sessions of older versions."});
}

Result<Fd> lock_starts(const StateDirectory& state) {
    Fd file(openat(state.fd.get(), "start.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return fail_errno("cannot lock the directory for session state", state.path);
    fchmod(file.get(), 0600); // whatever the umask is: the next launch must be able to open it
    while (flock(file.get(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno("cannot lock the directory for session state", state.path);
    return file;
}

} // namespace containerize::launch
