#include "util/core_dumps.h"

#include <optional>

#include <sys/resource.h>

namespace containerize {

namespace {

/// What forbid_core_dumps() took away.
std::optional<rlim_t> taken;

bool set_limit(rlim_t soft) {
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return false;
    limit.rlim_cur = soft;
    return setrlimit(RLIMIT_CORE, &limit) == 0;
}

} // namespace

// Not PR_SET_DUMPABLE: it gives what /proc has of this process to root, and no user namespace could be set
// up.
void forbid_core_dumps() {
    // Where core_pattern is a pipe to a program (apport, abrt, systemd-coredump), the kernel asks for no
    // limit, but starts nothing where it is 1. Nor does it write a file of one byte.
    constexpr rlim_t no_dump = 1;
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur == no_dump) return;
    // A hard limit of 0 cannot be raised: it keeps files away, and no more can be done.
    if (set_limit(no_dump)) taken = limit.rlim_cur;
}

void restore_core_limit() {
    if (taken) set_limit(*taken);
}

} // namespace containerize
