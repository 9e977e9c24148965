#include "mounts/outside_view.h"

#include "core/fd_message.h"
#include "core/signals_blocked.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

struct Answer {
    bool closed; ///< on our own mounts, which are closed to other namespaces
    uid_t uid;
    gid_t gid;
};

[[noreturn]] void answer_all(const Fd& channel) {
    for (;;) {
        const auto asked = receive_message(channel.get(), 1);
        if (asked.text.empty()) _exit(0);
        struct stat info {};
        const bool seen = asked.file && fstat(asked.file.get(), &info) == 0;
        const bool closed = asked.file && !seen && errno == EACCES;
        const Answer answer{.closed = closed, .uid = seen ? info.st_uid : unknown_owner, .gid = info.st_gid};
        if (send(channel.get(), &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) _exit(0);
    }
}

} // namespace

Result<OutsideView> OutsideView::keep() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail_errno("cannot create a socket");
    OutsideView view;
    view.channel_.reset(ends[0]);
    const Fd theirs(ends[1]);
    const pid_t parent = getpid();
    // A signal that asks all of a session's processes to end must not end only this one.
    const pid_t pid = fork_blocked();
    if (pid < 0) return fail_errno("cannot start a process");
    if (pid > 0) {
        view.helper_ = pid;
        return view;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    view.channel_.reset();
    answer_all(theirs);
}

Look OutsideView::look() const {
    return [this](const char* path, struct stat* info) { return look_at(path, info); };
}

bool OutsideView::has_ended() const {
    pollfd channel{.fd = channel_.get(), .events = 0, .revents = 0};
    return channel_ && poll(&channel, 1, 0) > 0 && (channel.revents & POLLHUP) != 0;
}

bool OutsideView::on_exit(pid_t pid) {
    if (pid != helper_) return false;
    helper_ = 0; // another process may get this pid
    return true;
}

int OutsideView::look_at(const char* path, struct stat* info) const {
    const Fd file(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file || fstat(file.get(), info) != 0) return -1;
    if (!channel_) return 0;
    Answer answer{};
    if (!send_message(channel_.get(), "?", file.get()) ||
        recv(channel_.get(), &answer, sizeof answer, 0) != sizeof answer)
        answer = {.closed = false, .uid = unknown_owner, .gid = static_cast<gid_t>(-1)};
    if (answer.closed) return 0;
    info->st_uid = answer.uid;
    info->st_gid = answer.gid;
    return 0;
}

} // namespace containerize::mounts
