// The vendors of GPUs. All that the code needs to know of a vendor is in its entry, and its file (amd.cpp)
// defines that.
#pragma once

#include "gpu/host_tree.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

struct AcceleratedPackage;
struct Device;
struct Fit;
struct Host;
class Injector;

struct Vendor {
    std::string_view option;        ///< in options, variables and manifests: "nvidia"
    std::string_view name;          ///< "NVIDIA"
    std::string_view platform;      ///< what packages are built for, in manifests: "cuda"
    std::string_view platform_name; ///< the same for users: "CUDA"
    unsigned pci_id = 0;
    bool in_class_12 = false; ///< has GPUs among the PCI bus's processing accelerators, too
    const char* node = "";    ///< a device that programs need, which may be missing although there are GPUs
    std::string_view without = {};        ///< what happens without it, and how to get it
    const char* runtime_option = nullptr; ///< of container runtimes, for its drivers; null: they have none
    const char* runtime_node = nullptr;   ///< a device of nodes on which that option works

    /// The version of the driver that is loaded, or the driver's name; empty: none is.
    std::string (*driver)(const TreeView& host);
    /// Adds what the driver says of its devices, and devices that the PCI bus does not show.
    void (*add_details)(const TreeView& host, std::vector<Device>& devices) = nullptr;
    /// Directories of libraries that may be missing in ld.so.cache.
    std::vector<std::string> (*library_directories)(const TreeView& host) = nullptr;
    /// Adds what the devices need in an image's root.
    void (*inject)(Injector& injector, const Host& host);
    /// Whether a package that was built for the platform can use the host's devices.
    Fit (*fit)(const AcceleratedPackage& package, const Host& host);

    static const Vendor nvidia, amd, intel;
};

/// In the order in which users see them.
inline constexpr std::array vendors = {&Vendor::nvidia, &Vendor::amd, &Vendor::intel};

} // namespace containerize::gpu
