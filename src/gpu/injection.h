// Determines, at the start of a session, what programs in a container's root need from the host to use its
// accelerators.
#pragma once

#include "core/error.h"
#include "gpu/host.h"
#include "gpu/host_tree.h"
#include "launch/environment.h"
#include "manifest/bind.h"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

// Everything is placed here, so that nothing in the image is covered.
inline constexpr std::string_view library_directory = "/.containerize/gpu/lib";
inline constexpr std::string_view program_directory = "/.containerize/gpu/bin";

/// Whose devices to make usable, of those that the host has: any vendor's ("auto"), nobody's, or one
/// vendor's.
using Policy = std::span<const Vendor* const>;
/// Fails with an input error unless `text` is "auto", a vendor's option or "none".
Result<Policy> parse_policy(std::string_view text);
/// All that parse_policy() accepts.
std::vector<std::string> policy_names();

struct Request {
    Policy policy = vendors;
    std::vector<std::string> libraries; ///< the host's, besides those of drivers; dependencies are added
    bool has_devices = true;            ///< the host's /dev is visible inside already
    std::filesystem::path host_root = "/";
    /// The caller's environment. NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES and
    /// CUDA_MPS_PIPE_DIRECTORY are used. Variables that select devices (CUDA_VISIBLE_DEVICES,
    /// ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK and the like) reach programs unchanged.
    std::map<std::string, std::string> variables;
    const TreeView& image; ///< the container's root
    /// The environment mounted at `prefix`, or null. What it contains is not taken from the host.
    const TreeView* environment = nullptr;
    std::string prefix;
};

struct Symlink {
    std::string path;   ///< inside
    std::string target; ///< text of the symlink
    friend auto operator<=>(const Symlink&, const Symlink&) = default;
};

struct Injection {
    std::vector<manifest::Bind>
        binds; ///< files, device nodes, sockets, and the directories /dev/dri and that of MPS
    std::vector<Symlink> links; ///< in library_directory
    std::vector<launch::EnvironmentChange> environment;
    std::vector<std::string> warnings; ///< mistakes of the caller, who must see them
    std::vector<std::string> notes;    ///< decisions and their reasons, for the session's log and users
    [[nodiscard]] bool empty() const { return binds.empty() && environment.empty(); }
};

/// Never fails: leaves out what is unavailable and adds a note.
Injection find(const Request& request);

} // namespace containerize::gpu
