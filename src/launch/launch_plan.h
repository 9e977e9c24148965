// What a launcher must know about an installation, computed once by the session that mounted it.
#pragma once

#include "launch/environment.h"
#include "launch/session_format.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace containerize::launch {

/// Kept in the session's directory, one file for each installation, which exists only while the image is
/// mounted.
struct LaunchPlan {
    std::string identity; ///< of the manifest that the plan was made from (manifest_identity)
    std::string prefix;   ///< where the installation is
    std::vector<EnvironmentChange> root = {}; ///< what the root needs, applied before all else
    std::vector<EnvironmentChange> activation;
    std::vector<std::string> scripts = {}; ///< part of the activation: paths of shell scripts to source
    std::vector<EnvironmentChange> environment;
};

std::string to_bytes(const LaunchPlan& plan);
/// Returns nullopt if `bytes` is not a complete plan of this version.
std::optional<LaunchPlan> plan_from_bytes(std::string_view bytes);

/// The file that makes a directory an installation.
inline constexpr const char* manifest_name = "containerize.json";
/// Identifies a manifest by its device, inode, size and times, so that each launch can check whether the
/// installation was replaced.
std::string manifest_identity(const struct stat& manifest);
/// The same for an open directory, because a session's own mount hides the path; empty if it has none.
std::string manifest_identity(int directory);

/// Name of the plan's file for an installation at `prefix`.
std::string plan_file_name(std::string_view prefix);

} // namespace containerize::launch
