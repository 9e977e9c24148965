// User and mount namespaces: what every Linux user may have, in the order that works.
#pragma once

#include "util/error.h"

#include <sys/types.h>

namespace containerize::runtime {

/// Puts the calling (single-threaded) process into new user and mount namespaces, with the user's own uid and
/// gid, and makes every mount a slave: host mounts still arrive, ours never leave. Where no user namespace
/// may be made, but the process has the right to mount, a mount namespace alone. Fails with the sysctl or
/// permission that is missing, by name.
Status enter_new_namespaces();

/// A mount namespace alone, for who has the right to mount where they are: root.
Status enter_mount_namespace();

/// Moves the calling process into the namespaces of `pid`. errno on failure. Async-signal-safe: usable after
/// fork.
int join_namespaces(pid_t pid);

} // namespace containerize::runtime
