#include "runtime/namespace.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

Status write_proc(const char* path, const std::string& text) {
    const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return fail_errno("cannot set up a user namespace", path);
    return {};
}

bool setting_is(const char* path, std::string_view value) {
    std::ifstream file(path);
    std::string text;
    return std::getline(file, text) && text == value;
}

// Why unshare() was refused: the settings that sites use, asked one by one.
std::string unshare_hint(int error_number) {
    if (setting_is("/proc/sys/user/max_user_namespaces", "0"))
        return "The setting user.max_user_namespaces is 0 on this machine. An administrator can allow user "
               "namespaces "
               "with `sysctl -w user.max_user_namespaces=15000`.";
    if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        return "The setting kernel.unprivileged_userns_clone is 0 on this machine. An administrator can "
               "allow user "
               "namespaces with `sysctl -w kernel.unprivileged_userns_clone=1`.";
    if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        return "The setting kernel.apparmor_restrict_unprivileged_userns is 1 on this machine: AppArmor "
               "allows user "
               "namespaces only to listed programs.";
    if (error_number == ENOSPC)
        return "The limit user.max_user_namespaces (or of namespaces within each other, 32) is used up on "
               "this machine.";
    if (error_number == EINVAL) return "This kernel was built without user namespaces.";
    return "A security policy of this machine (seccomp, SELinux or a container without that right) refuses "
           "it.";
}

} // namespace

Status enter_new_namespaces() {
    // Asked before unshare: afterwards, until the maps are written, they read as the overflow ids.
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        const int error_number = errno;
        return fail(
            {.what = "cannot make a user namespace",
             .why = std::strerror(error_number),
             .where = {},
             .hint = unshare_hint(error_number) + "\n`containerize doctor` shows what this machine allows."});
    }
    // The kernel takes a gid map from an unprivileged process only after setgroups has been given up.
    if (auto done = write_proc("/proc/self/setgroups", "deny"); !done) return done;
    const auto identity = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
    if (auto done = write_proc("/proc/self/uid_map", identity(uid)); !done) return done;
    if (auto done = write_proc("/proc/self/gid_map", identity(gid)); !done) return done;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
        return fail_errno("cannot make the mounts of the new namespace slaves", "/");
    return {};
}

int join_namespaces(pid_t pid) {
    constexpr int both = CLONE_NEWUSER | CLONE_NEWNS;
    // One call that takes both in the right order by itself: Linux 5.8.
    const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd >= 0) {
        const int result = setns(pidfd, both);
        const int error_number = errno;
        close(pidfd);
        if (result == 0) return 0;
        if (error_number != EINVAL) return error_number;
    }
    // Older kernels: both files are opened first, because after the first setns /proc may show another view.
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    const Fd user(open(path, O_RDONLY | O_CLOEXEC));
    if (!user) return errno;
    std::snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    const Fd mounts(open(path, O_RDONLY | O_CLOEXEC));
    if (!mounts) return errno;
    if (setns(user.get(), CLONE_NEWUSER) != 0) return errno;
    if (setns(mounts.get(), CLONE_NEWNS) != 0) return errno;
    return 0;
}

Result<NamespaceHolder> NamespaceHolder::create(const std::filesystem::path& staging,
                                                const std::filesystem::path& prefix) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe");
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a process for the build's namespace");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        // An interrupt at the terminal is for the builder, which ends this process when it unwinds.
        setpgid(0, 0);
        reader.reset();
        Status done = enter_new_namespaces();
        if (done && mount(staging.c_str(), prefix.c_str(), nullptr, MS_BIND, nullptr) != 0)
            done = fail_errno("cannot bind the staging directory over the prefix", prefix.string());
        // Parent reads: nothing and end of file is success, else "what NUL why NUL where NUL hint".
        if (!done) {
            const auto& error = done.error();
            const std::string text = error.what + '\0' + error.why + '\0' + error.where + '\0' + error.hint;
            [[maybe_unused]] const auto written = write(writer.get(), text.data(), text.size());
            _exit(1);
        }
        // Closing would say "done": the parent must learn of success while this process stays.
        const char ready = '\n';
        [[maybe_unused]] const auto written = write(writer.get(), &ready, 1);
        writer.reset();
        for (;;)
            pause();
    }
    writer.reset();
    NamespaceHolder holder(pid);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(reader.get(), buffer, sizeof buffer)) != 0;) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read from the build's namespace");
        text.append(buffer, static_cast<std::size_t>(got));
    }
    if (text == "\n") return holder;
    if (text.empty())
        return fail({.what = "the build's namespace could not be made",
                     .why = "its process died",
                     .where = {},
                     .hint = {}});
    Error error;
    std::string* fields[] = {&error.what, &error.why, &error.where, &error.hint};
    std::size_t start = 0;
    for (auto* field : fields) {
        const auto end = std::min(text.find('\0', start), text.size());
        *field = text.substr(start, end - start);
        start = std::min(end + 1, text.size());
    }
    return fail(std::move(error));
}

NamespaceHolder::NamespaceHolder(NamespaceHolder&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

NamespaceHolder& NamespaceHolder::operator=(NamespaceHolder&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
}

NamespaceHolder::~NamespaceHolder() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

} // namespace containerize::runtime
