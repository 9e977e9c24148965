// Lets others start their sessions while a filesystem blocks the start of this one, perhaps for ever.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <sys/types.h>

namespace containerize::session {

/// Unlocks start.lock, the standard input, after ten seconds without a sign of life from this process. A
/// process that waits for a filesystem can do nothing itself, and its launcher may have been killed. So a
/// child waits for the signs of life that a signal handler of this process gives.
class StartGuard {
public:
    StartGuard() = default;
    /// The child closes `report`, so that the launcher sees the end of it if this process is killed.
    Status begin(const Fd& report);
    /// From now on, nobody unlocks start.lock but this process.
    void end();
    ~StartGuard() { end(); }
    StartGuard(const StartGuard&) = delete;
    StartGuard& operator=(const StartGuard&) = delete;

private:
    Fd writer_;
    pid_t child_ = 0;
};

} // namespace containerize::session
