// Detects a host's accelerators and drivers from /sys, /proc and /dev, without vendors' tools.
#pragma once

#include "gpu/tree.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

enum class Vendor { nvidia, amd, intel };
inline constexpr std::array all_vendors = {Vendor::nvidia, Vendor::amd, Vendor::intel};
/// "NVIDIA", "AMD", "Intel".
std::string_view name_of(Vendor vendor);

/// An instance of an NVIDIA GPU (Multi-Instance GPU). Only the driver's library knows its UUID.
struct MigInstance {
    unsigned gpu_instance = 0, compute_instance = 0;
    std::vector<std::string> nodes; ///< grant access to the two instances: "/dev/nvidia-caps/nvidia-cap12"
};

struct Device {
    Vendor vendor = Vendor::nvidia;
    std::string address;            ///< PCI address: "0000:17:00.0"
    std::string name;               ///< "NVIDIA H200"; at least "PCI device 10de:2335"
    std::string uuid;               ///< "GPU-..."; empty if no file tells
    std::string target;             ///< for AMD: "gfx90a"; empty for others
    std::vector<std::string> nodes; ///< "/dev/nvidia0", "/dev/dri/renderD128"
    std::vector<MigInstance> mig;
};

struct Host {
    std::vector<Device> devices; ///< sorted by vendor, then address
    std::string nvidia_driver, amd_driver,
        intel_driver; ///< "570.86.15", "6.10.5" or "amdgpu", "xe"; empty: not loaded
    [[nodiscard]] std::vector<const Device*> of(Vendor vendor) const;
    [[nodiscard]] const std::string& driver(Vendor vendor) const;
    /// Returns "4 x NVIDIA H200, driver 570.86.15"; empty without devices of the vendor.
    [[nodiscard]] std::string describe(Vendor vendor) const;
};

/// `tree` is the host's root.
Host discover(const TreeView& tree);

/// Returns what keeps programs from using a vendor's devices, with advice; empty if nothing does.
std::string obstacle(const TreeView& tree, const Host& host, Vendor vendor);

/// "gfx90a" for the kernel's number 90010; empty for 0, the number of CPUs.
std::string gfx_target(unsigned version);

} // namespace containerize::gpu
