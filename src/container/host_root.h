// The root directory for container runtimes if programs are to see the host unchanged: a directory with the
// names of the host's root, over which the originals are bound.
#pragma once

#include "core/error.h"
#include "launch/session_state.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::container {

/// What the names of these directories start with.
inline constexpr std::string_view host_root_start = "root-";

struct HostRoot {
    std::filesystem::path directory;
    /// Absolute paths to bind over themselves, without /dev, /proc and /sys, which every container runtime
    /// provides.
    std::vector<std::string> names;
};

/// Makes such a directory in the state directory, or finds it: one for each set of names.
Result<HostRoot> make_host_root(const launch::StateDirectory& state);

} // namespace containerize::container
