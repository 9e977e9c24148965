// The session: one process for each user (and job step) on a node that keeps the namespaces in which
// installations are mounted, and one server process for each of them. Nobody starts or stops it by hand.
#pragma once

#include "runtime/root.h"
#include "util/error.h"
#include "util/fd.h"

#include <string>

namespace containerize::runtime {

struct SessionArguments {
    std::string state_path;   ///< the state directory, checked by the launcher
    std::string key;          ///< the session's name in it (session_key.h)
    std::string key_of_login; ///< its name where logins end what they have started; may be empty
    std::string prefix;       ///< the first installation to mount
    FindInjection inject;     ///< what the base of the installation at `prefix` gets; may be empty
};

/// Becomes the session. The caller holds STATE/start.lock, and waits on the other end of `report`: "ok" and
/// what to warn of, a line each, or what failed. `step` is a pidfd of what ends with the job step
/// (step_process()), or none: after that the session waits for no more work. Returns when the session has
/// ended, with the process's exit code.
int run_session(const SessionArguments& arguments, Fd step, Fd report);

} // namespace containerize::runtime
