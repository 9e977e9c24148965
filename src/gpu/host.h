// Which accelerators and drivers a host has, as its /sys, /proc and /dev say it; no vendor's tool is asked.
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

/// A part of an NVIDIA GPU (Multi-Instance GPU). Its UUID is known to the driver's library only.
struct MigInstance {
    unsigned gpu_instance = 0, compute_instance = 0;
    std::vector<std::string> nodes; ///< "/dev/nvidia-caps/nvidia-cap12": the right to use each of the two
};

struct Device {
    Vendor vendor = Vendor::nvidia;
    std::string address;            ///< on the PCI bus: "0000:17:00.0"
    std::string name;               ///< "NVIDIA H200"; at least "PCI device 10de:2335"
    std::string uuid;               ///< "GPU-..."; empty where no file says it
    std::string target;             ///< of AMD: "gfx90a"; empty for others
    std::vector<std::string> nodes; ///< "/dev/nvidia0", "/dev/dri/renderD128"
    std::vector<MigInstance> mig;
};

struct Host {
    std::vector<Device> devices; ///< in the order of their addresses, vendor by vendor
    std::string nvidia_driver, amd_driver,
        intel_driver; ///< "570.86.15", "6.10.5" or "amdgpu", "xe"; empty: none
    [[nodiscard]] std::vector<const Device*> of(Vendor vendor) const;
    [[nodiscard]] const std::string& driver(Vendor vendor) const;
    /// "4 x NVIDIA H200, driver 570.86.15"; empty if there is none of the vendor's.
    [[nodiscard]] std::string describe(Vendor vendor) const;
};

/// `tree` is the host's root.
Host discover(const TreeView& tree);

/// What keeps programs from using a vendor's devices, and what to do about it; empty where nothing does.
std::string obstacle(const TreeView& tree, const Host& host, Vendor vendor);

/// "gfx90a" of 90010, as the kernel writes it; empty for 0, which CPUs have.
std::string gfx_target(unsigned version);

} // namespace containerize::gpu
