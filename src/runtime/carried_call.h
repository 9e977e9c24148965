// A launch on its way through a container runtime. That changes variables, forgets which signals are ignored
// and cannot be told every working directory; so what the caller had travels beside it, in a file in memory
// that stays open, and is put back inside by the launcher.
#pragma once

#include "runtime/launch_plan.h"
#include "util/error.h"
#include "util/fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::runtime {

struct CarriedCall {
    std::string program; ///< the wrapper's own path: PREFIX/bin/NAME
    std::string target;  ///< the path to execute inside
    bool through_prefix = true;
    std::string directory;             ///< the working directory by name; empty where it has none
    std::uint64_t ignored_signals = 0; ///< bit N - 1 for signal N
    std::vector<std::string> arguments, environment;
    LaunchPlan plan;
    /// Open in this process and those that it becomes: the working directory, and the launcher.
    int directory_fd = -1, launcher_fd = -1;
};

/// What is to be known of this process: working directory, ignored signals, environment. Its arguments and
/// what it runs are left to the caller.
CarriedCall call_of_this_process();

std::string to_bytes(const CarriedCall& call);
/// Nothing if `bytes` is not a whole call of this version.
std::optional<CarriedCall> call_from_bytes(std::string_view bytes);

/// The call as a file for programs that this one becomes, and for no one else.
Result<Fd> pack(const CarriedCall& call);

/// Tells those programs which descriptor it is.
inline constexpr const char* call_variable = "CONTAINERIZE_CALL";

/// The call that this process was started for, if it was; its descriptors are closed, its working directory
/// and signals are in place. An error where there is one that this version cannot read.
Result<std::optional<CarriedCall>> resume_call();

} // namespace containerize::runtime
