// The root directory for a container runtime whose programs are to see the host as it is: a directory with
// the names of the host's own, on which those are bound.
#pragma once

#include "runtime/session_state.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::runtime {

struct HostRoot {
    std::filesystem::path directory;
    /// Absolute paths to be bound on themselves. /dev, /proc and /sys are not among them: every container
    /// runtime brings those.
    std::vector<std::string> names;
};

/// Kept in the state directory, one for each way that a root can look.
Result<HostRoot> make_host_root(const StateDirectory& state);

} // namespace containerize::runtime
