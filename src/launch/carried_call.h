// A launch on its way through a container runtime. The runtime changes variables, resets ignored signals and
// cannot be given every working directory. So the caller's state travels in an open in-memory file, from
// which the launcher restores it inside the container.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "core/variable_table.h"
#include "launch/launch_plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::launch {

struct CarriedCall {
    std::string program; ///< the wrapper's own path: PREFIX/bin/NAME
    std::string target;  ///< the path to execute inside
    bool through_prefix = true;
    std::string directory;             ///< path of the working directory; empty if it has none
    std::uint64_t ignored_signals = 0; ///< bit N - 1 for signal N
    std::vector<std::string> arguments, environment;
    LaunchPlan plan;
    /// Descriptors of the working directory and the launcher, which stay open across exec.
    int directory_fd = -1, launcher_fd = -1;
};

/// Captures the working directory, ignored signals and environment of this process. The caller fills in the
/// rest.
CarriedCall call_of_this_process();

std::string to_bytes(const CarriedCall& call);
/// Returns nullopt if `bytes` is not a complete call of this version.
std::optional<CarriedCall> call_from_bytes(std::string_view bytes);

/// Writes the call to an in-memory file, whose descriptor programs that this process executes inherit.
Result<Fd> pack(const CarriedCall& call);

/// The variable that passes the number of that descriptor.
inline constexpr Variable call_variable = "CONTAINERIZE_CALL";

/// Returns the call that this process was started for, or nullopt. Restores its working directory and ignored
/// signals, and closes its descriptors. Fails if this version cannot read the call.
Result<std::optional<CarriedCall>> resume_call();

} // namespace containerize::launch
