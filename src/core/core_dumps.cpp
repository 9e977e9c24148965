#include "core/core_dumps.h"

#include <optional>

#include <sys/resource.h>

namespace containerize {

namespace {

/// The limit that forbid_core_dumps() replaced.
std::optional<rlim_t> taken;

bool set_limit(rlim_t soft) {
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return false;
    limit.rlim_cur = soft;
    return setrlimit(RLIMIT_CORE, &limit) == 0;
}

} // namespace

// PR_SET_DUMPABLE is no alternative: it makes root the owner of this process's files in /proc, and then no
// user namespace can be set up.
void forbid_core_dumps() {
    // If core_pattern is a pipe to a program (apport, abrt, systemd-coredump), the kernel ignores the limit,
    // except that 1 means not to start the program. No file of one byte is written either.
    constexpr rlim_t no_dump = 1;
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur == no_dump) return;
    // A hard limit of 0 cannot be raised to this. It prevents files, and more cannot be done.
    if (set_limit(no_dump)) taken = limit.rlim_cur;
}

void restore_core_limit() {
    if (taken) set_limit(*taken);
}

} // namespace containerize
