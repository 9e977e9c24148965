#include "launch/namespace.h"

#include "core/entries.h"
#include "core/text.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

bool setting_is(const char* path, std::string_view value) {
    std::ifstream file(path);
    std::string text;
    return std::getline(file, text) && text == value;
}

// Which policy may forbid user namespaces, or their use.
std::string policy_hint() {
    if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        return "The setting kernel.apparmor_restrict_unprivileged_userns is 1 on this machine: AppArmor "
               "allows user namespaces only to listed programs.";
    return "A security policy of this machine forbids user namespaces: AppArmor, SELinux, seccomp, or that "
           "of a container.";
}

constexpr const char* doctor_hint = "\n`containerize doctor` shows what this machine allows.";

// Why unshare() was refused: looks at the settings that sites use.
std::string unshare_hint(int error_number) {
    if (setting_is("/proc/sys/user/max_user_namespaces", "0"))
        return "The setting user.max_user_namespaces is 0 on this machine. An administrator can allow user "
               "namespaces "
               "with `sysctl -w user.max_user_namespaces=15000`.";
    if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        return "The setting kernel.unprivileged_userns_clone is 0 on this machine. An administrator can "
               "allow user "
               "namespaces with `sysctl -w kernel.unprivileged_userns_clone=1`.";
    if (error_number == ENOSPC)
        return "This machine has reached its limit of user namespaces (user.max_user_namespaces, or 32 "
               "nested ones).";
    if (error_number == EINVAL) return "This kernel was built without user namespaces.";
    return policy_hint();
}

// AppArmor, for one, may allow the namespace itself and then refuse its use.
std::unexpected<Error> unusable(std::unexpected<Error> error) {
    error.error().hint = policy_hint() + doctor_hint;
    error.error().fault = Fault::engine;
    return error;
}

Status write_proc(const char* path, const std::string& text) {
    const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return unusable(fail_errno("cannot set up a user namespace", path));
    return {};
}

Status make_mounts_slaves() {
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
        return unusable(fail_errno("cannot set the mount propagation of the new namespace", "/"));
    return {};
}

Status enter_mount_namespace() {
    if (unshare(CLONE_NEWNS) != 0) return unusable(fail_errno("cannot create a mount namespace"));
    return make_mounts_slaves();
}

/// The first range of users of our user namespace.
struct MappedUsers {
    unsigned long inside = 1, outside = 1, count = 0;
};

/// Nothing if they cannot be read, or if there are several ranges.
std::optional<MappedUsers> users_of_namespace() {
    std::ifstream map("/proc/self/uid_map");
    MappedUsers users;
    if (!(map >> users.inside >> users.outside >> users.count)) return std::nullopt;
    unsigned long more = 0;
    return map >> more ? std::nullopt : std::optional(users);
}

bool is_root_of_machine() {
    const auto users = users_of_namespace();
    // The map of the initial user namespace covers all.
    return geteuid() == 0 && users && users->inside == 0 && users->outside == 0 &&
           users->count == 0xffffffffUL;
}

Fd open_namespace(pid_t pid, const char* name) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    return Fd(open(path, O_RDONLY | O_CLOEXEC));
}

ino_t number_of_pid_namespace(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    struct stat info {};
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

} // namespace

bool has_access_to_other_users() {
    // The machine's root owns this in all namespaces, under the number that it has there.
    struct stat info {};
    if (stat("/proc/sys/kernel", &info) == 0 && info.st_uid == geteuid()) return true;
    const auto users = users_of_namespace();
    return geteuid() == 0 && !(users && users->count == 1);
}

Status enter_namespaces() {
    if (is_root_of_machine() && enter_mount_namespace()) return {};
    return enter_new_namespaces();
}

Status enter_new_namespaces() {
    // Read before unshare(): until the maps are written, both are the overflow ids.
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        const int error_number = errno;
        // The caller is usually root, for whom its current user namespace will do.
        if (enter_mount_namespace()) return {};
        return fail({.what = "cannot create a user namespace",
                     .why = std::strerror(error_number),
                     .hint = unshare_hint(error_number) + doctor_hint,
                     .fault = Fault::engine});
    }
    // An unprivileged process may write a gid map only after it has given up setgroups.
    TRY(write_proc("/proc/self/setgroups", "deny"));
    const auto identity = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
    TRY(write_proc("/proc/self/uid_map", identity(uid)));
    TRY(write_proc("/proc/self/gid_map", identity(gid)));
    return make_mounts_slaves();
}

ProcessNamespaces ProcessNamespaces::of(pid_t pid) {
    ProcessNamespaces namespaces;
    namespaces.pid_ = pid;
    namespaces.process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (namespaces.process_ || errno == ESRCH) return namespaces;
    namespaces.users_ = open_namespace(pid, "user");
    namespaces.mounts_ = open_namespace(pid, "mnt");
    return namespaces;
}

bool ProcessNamespaces::in_pid_namespace(ino_t number) const {
    return number_of_pid_namespace(pid_) == number || pid_namespace_by_descriptor() == number;
}

bool ProcessNamespaces::may_be_in_pid_namespace(ino_t number) const {
    return in_pid_namespace(number) ||
           (process_ ? pid_namespace_by_descriptor() : number_of_pid_namespace(pid_)) == 0;
}

// /proc may be that of another pid namespace, with other pids; fdinfo then has the process's pid there. Read
// without streams, because launchers use this.
ino_t ProcessNamespaces::pid_namespace_by_descriptor() const {
    char text[512] = {};
    const Fd file(
        open(("/proc/self/fdinfo/" + std::to_string(process_.get())).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file || read(file.get(), text, sizeof text - 1) <= 0) return 0;
    static constexpr const char* field = "\nPid:";
    const char* line = std::strstr(text, field);
    return line == nullptr ? 0 : number_of_pid_namespace(std::atoi(line + std::strlen(field)));
}

int ProcessNamespaces::enter() const {
    if (!process_) return enter_by_files();
    // One call joins both in the right order (Linux 5.8).
    if (setns(process_.get(), CLONE_NEWUSER | CLONE_NEWNS) == 0) return 0;
    if (errno != EINVAL) return errno;
    // EINVAL also means that the session is in our own user namespace, which cannot be joined again: root's
    // is.
    if (setns(process_.get(), CLONE_NEWNS) == 0) return 0;
    if (errno != EINVAL) return errno;
    ProcessNamespaces files;
    files.users_ = open_namespace(pid_, "user");
    files.mounts_ = open_namespace(pid_, "mnt");
    // If the process has ended, its pid may already be another's.
    if (syscall(SYS_pidfd_send_signal, process_.get(), 0, nullptr, 0) != 0) return errno;
    return files.enter_by_files();
}

int ProcessNamespaces::enter_by_files() const {
    if (!users_ || !mounts_) return ESRCH;
    if (setns(users_.get(), CLONE_NEWUSER) != 0 && errno != EINVAL) return errno;
    return setns(mounts_.get(), CLONE_NEWNS) == 0 ? 0 : errno;
}

std::string mount_namespace_of(const std::string& process) {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/" + process + "/ns/mnt", failed).string();
}

std::optional<std::vector<pid_t>> processes_in(const std::string& mount_namespace) {
    std::vector<pid_t> found;
    std::error_code failed;
    for (const auto& name : names_in("/proc", failed))
        if (const auto pid = to_number<pid_t>(name); pid && mount_namespace_of(name) == mount_namespace)
            found.push_back(*pid);
    return failed ? std::nullopt : std::optional(found);
}

int join_namespaces(pid_t pid) {
    return ProcessNamespaces::of(pid).enter();
}

} // namespace containerize::launch
