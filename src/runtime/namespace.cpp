#include "runtime/namespace.h"

#include "util/fd.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

// AppArmor, for one, allows the namespace itself and then refuses what it is for.
std::unexpected<Error> no_namespace(std::unexpected<Error> error) {
    error.error().fault = Fault::engine;
    return error;
}

Status write_proc(const char* path, const std::string& text) {
    const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return no_namespace(fail_errno("cannot set up a user namespace", path));
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

Status make_mounts_slaves() {
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
        return no_namespace(fail_errno("cannot make the mounts of the new namespace slaves", "/"));
    return {};
}

} // namespace

Status enter_mount_namespace() {
    if (unshare(CLONE_NEWNS) != 0) return no_namespace(fail_errno("cannot make a mount namespace"));
    return make_mounts_slaves();
}

Status enter_new_namespaces() {
    // Asked before unshare: afterwards, until the maps are written, they read as the overflow ids.
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        const int error_number = errno;
        // Root, as a rule: then the user namespace that we are in does as well.
        if (enter_mount_namespace()) return {};
        return fail(
            {.what = "cannot make a user namespace",
             .why = std::strerror(error_number),
             .where = {},
             .hint = unshare_hint(error_number) + "\n`containerize doctor` shows what this machine allows.",
             .fault = Fault::engine});
    }
    // The kernel takes a gid map from an unprivileged process only after setgroups has been given up.
    if (auto done = write_proc("/proc/self/setgroups", "deny"); !done) return done;
    const auto identity = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
    if (auto done = write_proc("/proc/self/uid_map", identity(uid)); !done) return done;
    if (auto done = write_proc("/proc/self/gid_map", identity(gid)); !done) return done;
    return make_mounts_slaves();
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
    // Older kernels, and one user namespace for both: the files are opened first, because after the first
    // setns /proc may show another view.
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    const Fd user(open(path, O_RDONLY | O_CLOEXEC));
    if (!user) return errno;
    std::snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    const Fd mounts(open(path, O_RDONLY | O_CLOEXEC));
    if (!mounts) return errno;
    // EINVAL: a session of root's that is in our own user namespace (enter_new_namespaces).
    if (setns(user.get(), CLONE_NEWUSER) != 0 && errno != EINVAL) return errno;
    if (setns(mounts.get(), CLONE_NEWNS) != 0) return errno;
    return 0;
}

} // namespace containerize::runtime
