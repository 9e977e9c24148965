// The session: one process for each user (and job step) on a node. It keeps the namespaces in which
// installations are mounted, and has one server process for each of them. Nobody starts or stops it by hand.
#pragma once

#include "core/fd.h"

#include <string>

namespace containerize::session {

struct SessionArguments {
    std::string state_path;   ///< the state directory, checked by the launcher
    std::string key;          ///< the session's name there (session_key.h)
    std::string key_of_login; ///< its name if logind kills the processes of logins; may be empty
    std::string prefix;       ///< the first installation to mount
};

/// Becomes the session; returns the exit code when it has ended. Standard input is STATE/start.lock, locked
/// by the launcher. The launcher reads from the other end of `report`: "ok" and warnings, one on each line,
/// or the failure. `step` is a pidfd of a process that ends with the job step (step_process()), or empty:
/// after that end the session waits for no more work.
int run_session(const SessionArguments& arguments, Fd step, Fd report);

} // namespace containerize::session
