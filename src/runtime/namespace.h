// User and mount namespaces: what every Linux user may have, in the order that works.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <sys/types.h>

namespace containerize::runtime {

/// Puts the calling (single-threaded) process into new namespaces, and makes every mount a slave: host mounts
/// still arrive, ours never leave. They are a mount namespace alone for the machine's root, who stays whom it
/// is: able to become other users, and to give files to them. For all others a user namespace, too, with the
/// user's own uid and gid; where that may not be made, but the process has the right to mount, again a mount
/// namespace alone. Fails with the sysctl or permission that is missing, by name.
Status enter_namespaces();

/// The same, but with a user namespace for root, too.
Status enter_new_namespaces();

/// User and mount namespace of a process, held open.
class ProcessNamespaces {
public:
    ProcessNamespaces() = default;
    /// None where they cannot be seen; entering fails then.
    static ProcessNamespaces of(pid_t pid);
    /// Whether the process is in the pid namespace with this number.
    [[nodiscard]] bool in_pid_namespace(ino_t number) const;
    /// Moves the calling process into them. errno on failure. Async-signal-safe: usable after fork.
    [[nodiscard]] int enter() const;

private:
    [[nodiscard]] int enter_by_files() const;

    pid_t pid_ = 0;
    Fd process_; ///< none before Linux 5.3: then these two
    Fd users_, mounts_;
};

/// Moves the calling process into the namespaces of `pid`, a child of the caller's or its own. errno on
/// failure.
int join_namespaces(pid_t pid);

} // namespace containerize::runtime
