// How an installation's programs are run: settings that its manifest records and a launch can override.
#pragma once

#include "core/error.h"
#include "core/variable_table.h"
#include "launch/environment.h"
#include "manifest/bind.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace containerize::manifest {

enum class StagePlace {
    off,
    held, ///< use a copy that a process holds (held_image.h), but make none
    local,
    ram
};

/// Overrides the installation's setting: "auto", "off", "local" or "ram".
inline constexpr Variable stage_variable = "CONTAINERIZE_STAGE";
/// Parses such a setting; "auto" and "" mean `held`. Anything else is an input error.
Result<StagePlace> parse_stage_place(std::string_view text);

/// Limits of PrefetchSetting::size.
inline constexpr std::uint64_t smallest_request = 64U << 10U;
inline constexpr std::uint64_t largest_request = 64U << 20U;

/// A prefetch setting of a site or user: WHEN, or WHEN:SIZE:DEPTH.
struct PrefetchSetting {
    enum class When {
        automatic, ///< if the images are on a network filesystem
        always,
        never
    };
    When when = When::automatic;
    std::uint64_t size = 4U << 20U; ///< largest request, in bytes
    unsigned depth = 8;             ///< concurrent requests
};
/// Parses "auto", "on", "off" or, with size and depth, "auto:4M:8". Anything else is an input error.
Result<PrefetchSetting> parse_prefetch(std::string_view text);

/// The root filesystem that programs run in.
struct Base {
    std::string reference = "host"; ///< as given by the user
    std::string digest;         ///< "sha256:..." of what the reference named; empty for host and directories
    std::filesystem::path file; ///< image or directory, absolute; empty for "host", the caller's own root
    std::uint64_t offset = 0;   ///< of the squashfs in the file, in bytes
    bool isolate = false;       ///< of the host, only what is bound is visible
    /// Variables that an image's configuration sets, applied before the environment's own activation.
    std::vector<launch::EnvironmentChange> environment;
    [[nodiscard]] bool is_host() const { return file.empty(); }
};

/// What a launch needs to know beside the images. `new` gets it from options and the configuration, the
/// manifest records it, and updates keep it. A new setting is added here, and to the two functions below.
struct LaunchSettings {
    Base base;
    std::vector<Bind> binds = {};            ///< of every launch; each launch may ask for more
    std::vector<std::string> host_libraries; ///< the host's, shown in an image's root where a node has them
    std::string gpu = "auto";                ///< whose drivers an image's root gets (gpu::parse_policy)
    std::string engine = "auto";             ///< what runs its programs: auto, native, apptainer, singularity
    std::string stage = "auto";              ///< whether sessions copy its images first (parse_stage_place)
    std::string prefetch = "auto";           ///< how its images are prefetched (parse_prefetch)
    bool kernel_mount = false;               ///< whether root's sessions let the kernel mount its image
};
/// An object with one entry for each setting.
nlohmann::json to_json(const LaunchSettings& settings);
/// Reads such an object, which may have further entries. Throws nlohmann::json::exception for what cannot be.
LaunchSettings settings_from(const nlohmann::json& object);

nlohmann::json to_json(const std::vector<launch::EnvironmentChange>& changes);
/// Throws as settings_from() does.
std::vector<launch::EnvironmentChange> changes_from(const nlohmann::json& list);

} // namespace containerize::manifest
