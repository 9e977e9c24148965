#include "util/core_dumps.h"

#include <sys/resource.h>

namespace containerize {

namespace {

/// What forbid_core_dumps() took away.
rlim_t taken = 0;

void set_limit(rlim_t soft) {
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
    limit.rlim_cur = soft;
    setrlimit(RLIMIT_CORE, &limit);
}

} // namespace

// Not PR_SET_DUMPABLE: it gives what /proc has of this process to root, and no user namespace could be set
// up.
void forbid_core_dumps() {
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur == 0) return;
    taken = limit.rlim_cur;
    set_limit(0);
}

void restore_core_limit() {
    if (taken != 0) set_limit(taken);
}

} // namespace containerize
