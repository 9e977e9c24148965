// User and mount namespaces, which every Linux user may create.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::launch {

/// Whether this is the machine's root, by whatever number, or root of several users in a user namespace. A
/// user who is alone in a user namespace, as after `unshare -r`, is root only in name.
bool has_access_to_other_users();

/// Moves the calling (single-threaded) process into new namespaces and makes every mount a slave: host mounts
/// still arrive, ours never leave. The machine's root gets only a mount namespace, so that it can still
/// become other users and give files to them. Others also get a user namespace with their own uid and gid; if
/// that is refused, but the process may mount, a mount namespace only. Fails with Fault::engine and the name
/// of the missing sysctl or permission.
Status enter_namespaces();

/// The same, but root gets a user namespace, too.
Status enter_new_namespaces();

/// The user and mount namespaces of a process, held open.
class ProcessNamespaces {
public:
    ProcessNamespaces() = default;
    /// If they cannot be opened, enter() fails.
    static ProcessNamespaces of(pid_t pid);
    /// Whether the process is in the pid namespace with this number.
    [[nodiscard]] bool in_pid_namespace(ino_t number) const;
    /// The same, or it cannot be found out.
    [[nodiscard]] bool may_be_in_pid_namespace(ino_t number) const;
    /// Moves the calling process into them. Returns 0 or errno. Async-signal-safe: usable after fork.
    [[nodiscard]] int enter() const;

private:
    [[nodiscard]] int enter_by_files() const;
    /// 0 if it cannot be found out.
    [[nodiscard]] ino_t pid_namespace_by_descriptor() const;

    pid_t pid_ = 0;
    Fd process_; ///< pidfd; none before Linux 5.3, where the next two are used
    Fd users_, mounts_;
};

/// Identifies the mount namespace of a process ("self" or a number) by what a link in /proc to it says; empty
/// for other users' processes and for zombies.
std::string mount_namespace_of(const std::string& process);
/// The processes in that mount namespace; nothing if they cannot be listed.
std::optional<std::vector<pid_t>> processes_in(const std::string& mount_namespace);

/// Moves the calling process into the namespaces of `pid`, a child of its own or of its parent. Returns 0 or
/// errno.
int join_namespaces(pid_t pid);

} // namespace containerize::launch
