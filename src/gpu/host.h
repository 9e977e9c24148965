// Detects a host's accelerators and drivers from /sys, /proc and /dev, without vendors' tools.
#pragma once

#include "gpu/vendor.h"

#include <map>
#include <string>
#include <vector>

namespace containerize::gpu {

/// An instance of an NVIDIA GPU (Multi-Instance GPU). Only the driver's library knows its UUID.
struct MigInstance {
    unsigned gpu_instance = 0, compute_instance = 0;
    std::vector<std::string> nodes =
        {}; ///< grant access to the two instances: "/dev/nvidia-caps/nvidia-cap12"
};

struct Device {
    const Vendor* vendor = nullptr;
    std::string address;                 ///< PCI address: "0000:17:00.0"
    std::string name;                    ///< "NVIDIA H200"; at least "PCI device 10de:2335"
    std::string uuid = {};               ///< "GPU-..."; empty if no file tells
    std::string target = {};             ///< for AMD: "gfx90a"; empty for others
    std::vector<std::string> nodes = {}; ///< "/dev/nvidia0", "/dev/dri/renderD128"
    std::vector<MigInstance> mig = {};
};

struct Host {
    std::vector<Device> devices;                       ///< sorted by vendor, then address
    std::map<const Vendor*, std::string> drivers = {}; ///< "570.86.15", "amdgpu"; empty: not loaded
    [[nodiscard]] std::vector<const Device*> of(const Vendor& vendor) const;
    [[nodiscard]] const std::string& driver(const Vendor& vendor) const { return drivers.at(&vendor); }
    /// Returns "4 x NVIDIA H200, driver 570.86.15"; empty without devices of the vendor.
    [[nodiscard]] std::string describe(const Vendor& vendor) const;
};

/// `tree` is the host's root.
Host discover(const TreeView& tree);

/// Returns what keeps programs from using a vendor's devices, with advice; empty if nothing does.
std::string obstacle(const TreeView& tree, const Host& host, const Vendor& vendor);

/// The version of NVIDIA's driver, "570.86.15": the loaded one's, otherwise that of its installed library.
/// Empty without either.
std::string nvidia_driver(const TreeView& tree);

/// "gfx90a" for the kernel's number 90010; empty for 0, the number of CPUs.
std::string gfx_target(unsigned version);

/// The first line of a small file without spaces at its end; empty if there is no such file.
std::string first_line(const TreeView& tree, const std::string& path);

} // namespace containerize::gpu
