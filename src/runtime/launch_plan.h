// What a launcher must know of an installation, worked out once by the session that mounted it.
#pragma once

#include "runtime/environment.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace containerize::runtime {

/// Of the plan, and of all else that launchers and sessions tell each other. Part of each session's name, so
/// that one never meets the other of another version: to be counted up with every change.
inline constexpr unsigned session_format = 4;

/// Kept in the session's directory, one file an installation: that it is there means that the image is
/// mounted.
struct LaunchPlan {
    std::string identity;                ///< of the manifest that it was made from (manifest_identity)
    std::string prefix;                  ///< where the installation is
    std::vector<EnvironmentChange> root; ///< what the root needs, before all else; for who comes from outside
    std::vector<EnvironmentChange> activation;
    std::vector<std::string> scripts; ///< part of the activation: whole paths of shell scripts to source
    std::vector<EnvironmentChange> environment;
};

std::string to_bytes(const LaunchPlan& plan);
/// Nothing if `bytes` is not a whole plan of this version.
std::optional<LaunchPlan> plan_from_bytes(std::string_view bytes);

/// Which manifest is at `prefix` now: its file's device, inode, size and times. Empty if there is none. One
/// system call, so that each launch can see whether the installation was replaced.
std::string manifest_identity(const std::string& prefix);
/// The same, asked of an open directory: a session's own mount hides the path.
std::string manifest_identity(int directory);
/// Of one that was found.
std::string manifest_identity(const struct stat& manifest);

/// Name of the plan's file for an installation at `prefix`.
std::string plan_file_name(std::string_view prefix);

} // namespace containerize::runtime
