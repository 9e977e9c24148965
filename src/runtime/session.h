// The session: one process for each user (and job step) on a node that keeps the namespaces in which
// installations are mounted, and one server process for each of them. Nobody starts or stops it by hand.
#pragma once

#include "runtime/root.h"
#include "util/error.h"
#include "util/fd.h"

#include <functional>
#include <string>

namespace containerize::runtime {

struct SessionArguments {
    std::string state_path; ///< the state directory, checked by the launcher
    std::string key;        ///< the session's name in it
    std::string prefix;     ///< the first installation to mount
    /// The drivers that the base of the installation at `prefix` gets, by its tree; may be empty.
    std::function<Injection(const image::TreeView&, const Manifest&, const std::string& prefix)> inject;
};

/// Becomes the session. The caller holds STATE/start.lock, and waits on the other end of `report`: "ok", or
/// what failed. `step` is a pidfd of what ends with the job step (step_process()), or none: after that the
/// session waits for no more work. Returns when the session has ended, with the process's exit code.
int run_session(const SessionArguments& arguments, Fd step, Fd report);

} // namespace containerize::runtime
