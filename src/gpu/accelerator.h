// Determines from its files what an environment's packages were built for, without importing them.
#pragma once

#include "gpu/vendor.h"

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::gpu {

struct AcceleratedPackage {
    std::string name;                            ///< "torch"
    std::string version;                         ///< "2.6.0+cu126"
    const Vendor* built_for = nullptr;           ///< whose GPUs; null: CPUs only
    std::string toolkit = {};                    ///< "12.6", or "12" if no file is more precise; may be empty
    std::string lowest_driver = {};              ///< NVIDIA's driver version; empty if unknown
    std::vector<std::string> architectures = {}; ///< "sm_90", "gfx90a"; empty if unknown
    std::string evidence = {}; ///< path in the tree of the file that tells what it was built for
    std::string lacks = {};    ///< what it needs and the environment does not have; may be empty

    /// Returns "torch 2.6.0+cu126".
    [[nodiscard]] std::string title() const { return name + " " + version; }
    /// Returns "CUDA 12.6", "ROCm 6.2", "Intel GPUs (XPU)" or "CPUs only".
    [[nodiscard]] std::string purpose() const;
};

/// Finds the directories of Python packages in the tree of an environment or of a whole root filesystem.
std::vector<std::string> site_packages(const TreeView& tree);

/// Returns those of torch, jax, tensorflow and cupy that `tree` contains.
std::vector<AcceleratedPackage> accelerated_packages(const TreeView& tree);

/// The driver released with a CUDA version ("560.28.03" for CUDA 12.6), and the oldest with which it works;
/// empty if unknown.
std::string driver_of_toolkit(std::string_view cuda);
std::string lowest_driver_for(std::string_view cuda);

/// The newest CUDA version that a driver of NVIDIA supports.
struct CudaOfDriver {
    std::string version = {}; ///< "12.4" for "550.54.15"; empty for drivers before CUDA 9.0
    bool lower_bound = false; ///< the driver is newer than this table, and may support a newer version
};
CudaOfDriver cuda_of_driver(std::string_view driver);

/// The format in manifests and of `check --json`.
nlohmann::json to_json(const AcceleratedPackage& package);

} // namespace containerize::gpu
