#include "runtime/session_state.h"

#include "runtime/engine.h"
#include "runtime/job_step.h"
#include "util/ownership.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

/// How many names for the state directory are tried.
constexpr int names_tried = 8;

unsigned long long inode_of(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 ? static_cast<unsigned long long>(info.st_ino) : 0;
}

std::string read_all(int fd) {
    std::string bytes;
    std::array<char, 8192> buffer;
    for (off_t offset = 0;;) {
        const auto got = pread(fd, buffer.data(), buffer.size(), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return bytes;
        bytes.append(buffer.data(), static_cast<std::size_t>(got));
        offset += got;
    }
}

/// Empty for a process that is in none.
std::string root_of_own_session(const StateDirectory& state) {
    std::array<char, 256> name;
    const auto size = readlinkat(state.fd.get(), inside_link_name().c_str(), name.data(), name.size());
    return root_in_name({name.data(), size > 0 ? static_cast<std::size_t>(size) : 0});
}

} // namespace

Result<StateDirectory> open_state_directory() {
    std::string path = "/tmp/containerize-" + std::to_string(geteuid());
    // A job may inherit the login node's variable, without the directory: then /tmp serves.
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && runtime[0] == '/') {
        struct stat info {};
        if (lstat(runtime, &info) == 0 && is_private_directory(info))
            path = std::string(runtime) + "/containerize";
    }
    // Somebody else may have taken the name: another user, or the real root where a namespace calls us root.
    for (int i = 0; i < names_tried; ++i) {
        const std::string candidate = i == 0 ? path : path + "-" + std::to_string(i);
        const auto open_it = [&] {
            return open(candidate.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        };
        Fd fd(open_it());
        if (!fd && errno == ENOENT) {
            if (mkdir(candidate.c_str(), 0700) != 0 && errno != EEXIST)
                return fail_errno("cannot make the directory for session state", candidate);
            fd.reset(open_it());
        }
        struct stat info {};
        if (fd && fstat(fd.get(), &info) == 0 && is_private_directory(info))
            return StateDirectory{.fd = std::move(fd), .path = candidate};
    }
    return fail({.what = "cannot use the directory for session state",
                 .why = "neither it nor its substitutes are directories that only you can read and write",
                 .where = path,
                 .hint = "Ask an administrator to remove them: another user may have made them."});
}

std::string session_key(const std::string& root) {
    struct stat root_directory {};
    stat("/", &root_directory);
    char text[128];
    // The group, because a session has a name for one only: in another's (newgrp, sg), files could not be
    // given to the caller's own group.
    std::snprintf(text, sizeof text, "v1-%llx-%llx-%llx-%llx.%llx-%x", inode_of("/proc/self/ns/user"),
                  inode_of("/proc/self/ns/mnt"), inode_of("/proc/self/ns/pid"),
                  static_cast<unsigned long long>(root_directory.st_dev),
                  static_cast<unsigned long long>(root_directory.st_ino), static_cast<unsigned>(getegid()));
    std::string key = text;
    // slurmd kills what a job step started when the step ends, so a session belongs to its step.
    if (const auto step = job_step(); !step.empty()) key.append(1, '.').append(step);
    // Its session mounts what others would leave to a container runtime.
    if (const auto engine = engine_of_environment(); engine && *engine == Engine::native) key += "-native";
    if (!root.empty()) key.append(1, root_separator).append(root);
    return key;
}

std::string root_in_name(std::string_view name) {
    const auto at = name.rfind(root_separator);
    return at == std::string_view::npos ? std::string() : std::string(name.substr(at + 1));
}

std::string inside_link_name() {
    return inside_link_start + std::to_string(inode_of("/proc/self/ns/mnt"));
}

bool lock_byte(int fd, off_t byte, short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return fcntl(fd, F_SETLK, &lock) == 0;
}

pid_t lock_holder(int fd) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = supervisor_byte;
    lock.l_len = 1;
    if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
    return lock.l_pid;
}

std::optional<SessionHandle> find_session(const StateDirectory& state, const std::string& root) {
    SessionHandle session;
    session.directory.reset(
        openat(state.fd.get(), session_key(root).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!session.directory && (root.empty() || root == root_of_own_session(state))) {
        session.inside = true;
        session.directory.reset(
            openat(state.fd.get(), inside_link_name().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    if (!session.directory) return std::nullopt;
    session.lock.reset(openat(session.directory.get(), lock_name, O_RDWR | O_CLOEXEC));
    if (!session.lock) return std::nullopt;
    // The supervisor takes this byte for writing when it ends: then it is too late to come in.
    if (!lock_byte(session.lock.get(), entering_byte, F_RDLCK)) return std::nullopt;
    session.supervisor = lock_holder(session.lock.get());
    if (session.supervisor <= 0) return std::nullopt;
    return session;
}

std::optional<LaunchPlan> read_plan(const SessionHandle& session, const std::string& prefix) {
    const Fd file(openat(session.directory.get(), plan_file_name(prefix).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    auto plan = plan_from_bytes(read_all(file.get()));
    if (!plan || plan->prefix != prefix) return std::nullopt;
    return plan;
}

std::string control_address(const Fd& directory) {
    return path_of(directory) + "/" + control_name;
}

namespace {

Result<std::string> ask(const SessionHandle& session, std::string_view request, const std::string& prefix) {
    const auto no_answer = [](int error_number) {
        auto error = fail_errno("the session does not answer", {}, error_number);
        error.error().hint =
            "Try again; if that does not help, end it: pkill -u $USER -f containerize-session";
        return error;
    };
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket) return fail_errno("cannot make a socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    control_address(session.directory)
        .copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return no_answer(errno);
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
        return no_answer(EPERM);
    const std::string message = std::string(request) + '\0' + prefix;
    if (send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) return no_answer(errno);
    std::string answer(control_message_size, '\0');
    const auto got = recv(socket.get(), answer.data(), answer.size(), 0);
    if (got <= 0) return no_answer(got == 0 ? ECONNRESET : errno);
    answer.resize(static_cast<std::size_t>(got));
    return answer;
}

} // namespace

Result<MountAnswer> request_mount(const SessionHandle& session, const std::string& prefix) {
    auto answer = ask(session, mount_request, prefix);
    if (!answer) return fail(std::move(answer.error()));
    if (*answer == "mounted") return MountAnswer::mounted;
    if (*answer == "stale") return MountAnswer::stale;
    return fail(error_of_answer(*answer));
}

Result<std::string> request_statistics(const SessionHandle& session, const std::string& prefix) {
    auto answer = ask(session, statistics_request, prefix);
    if (!answer) return answer;
    if (answer->starts_with('{')) return answer;
    return fail(
        {.what = "the session tells no statistics",
         .why = std::move(*answer),
         .where = prefix,
         .hint = "Sessions of older versions have none, and what the kernel mounts has none at all."});
}

std::string answer_for(const Error& error) {
    return (error.fault == Fault::engine ? std::string(1, engine_mark) : std::string()) + to_string(error);
}

Error error_of_answer(std::string_view answer) {
    const bool other_engine = answer.starts_with(engine_mark);
    return {.what = std::string(answer.substr(other_engine ? 1 : 0)),
            .why = {},
            .where = {},
            .hint = {},
            .fault = other_engine ? Fault::engine : Fault::failure};
}

Result<Fd> lock_starts(const StateDirectory& state) {
    Fd file(openat(state.fd.get(), "start.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return fail_errno("cannot lock the directory for session state", state.path);
    while (flock(file.get(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno("cannot lock the directory for session state", state.path);
    return file;
}

} // namespace containerize::runtime
