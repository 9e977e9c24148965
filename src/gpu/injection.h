// What programs in a container's root need of the host to use its accelerators: decided when a session
// starts.
#pragma once

#include "gpu/host.h"
#include "gpu/tree.h"
#include "runtime/bind.h"
#include "runtime/environment.h"
#include "util/error.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

// Where it all is inside, so that nothing of the image is covered.
inline constexpr std::string_view library_directory = "/.containerize/gpu/lib";
inline constexpr std::string_view program_directory = "/.containerize/gpu/bin";

/// Whose devices are made usable; `automatic` means those that the host has.
enum class Policy { automatic, nvidia, amd, intel, none };
/// "auto", "nvidia", "amd", "intel", "none".
Result<Policy> parse_policy(std::string_view text);

struct Request {
    Policy policy = Policy::automatic;
    std::vector<std::string> libraries; ///< of the host, beside the drivers', with all that they need
    bool graphics = false;              ///< OpenGL, EGL, Vulkan as well
    bool has_devices = true;            ///< the host's /dev is inside already
    std::filesystem::path host_root = "/";
    /// The caller's environment; read are NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES and
    /// CUDA_MPS_PIPE_DIRECTORY. What selects devices for programs (CUDA_VISIBLE_DEVICES,
    /// ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK and the like) passes through as it is.
    std::map<std::string, std::string> variables;
    const TreeView& image; ///< the container's root
    /// The environment that is mounted over `prefix` in it; null for none. What it brings need not be the
    /// host's.
    const TreeView* environment = nullptr;
    std::string prefix;
};

struct Symlink {
    std::string path;   ///< inside
    std::string target; ///< as it stands in the link
    friend auto operator<=>(const Symlink&, const Symlink&) = default;
};

struct Injection {
    std::vector<runtime::Bind>
        binds; ///< of files, device nodes, sockets, and the directories /dev/dri and that of MPS
    std::vector<Symlink> links; ///< in library_directory
    std::vector<runtime::EnvironmentChange> environment;
    std::vector<std::string> notes; ///< what was decided and why, for the session's log and for users
    [[nodiscard]] bool empty() const { return binds.empty() && environment.empty(); }
};

/// Never fails: what cannot be had is left out, and a note says so.
Injection find(const Request& request);

} // namespace containerize::gpu
