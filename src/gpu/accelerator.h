// What the packages of an environment were built for, read from their files; nothing is imported.
#pragma once

#include "gpu/tree.h"

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::gpu {

enum class Accelerator { cpu, cuda, rocm, xpu };
/// "cpu", "cuda", "rocm", "xpu".
std::string_view name_of(Accelerator accelerator);

struct AcceleratedPackage {
    std::string name;    ///< "torch"
    std::string version; ///< "2.6.0+cu126"
    Accelerator built_for = Accelerator::cpu;
    std::string toolkit;       ///< "12.6", or "12" where no file says more; empty for cpu and xpu
    std::string lowest_driver; ///< of NVIDIA's; empty where none is known
    std::vector<std::string> architectures; ///< "sm_90", "gfx90a"; empty where no file says them
    std::string evidence;                   ///< the file, in the tree, that says what it was built for
    std::string lacks; ///< what it needs beside itself and the environment has not; empty for nothing

    /// "torch 2.6.0+cu126".
    [[nodiscard]] std::string title() const { return name + " " + version; }
    /// "CUDA 12.6", "ROCm 6.2", "Intel GPUs (XPU)", "CPUs only".
    [[nodiscard]] std::string purpose() const;
};

/// The directories of a tree in which Python packages are: of an environment, or of a whole root filesystem.
std::vector<std::string> site_packages(const TreeView& tree);

/// torch, jax, tensorflow and cupy, as far as `tree` has them.
std::vector<AcceleratedPackage> accelerated_packages(const TreeView& tree);

/// The driver of the release that a toolkit came with ("560.28.03" for CUDA 12.6), and the oldest with which
/// it works; empty where they are not known.
std::string driver_of_toolkit(std::string_view cuda);
std::string lowest_driver_for(std::string_view cuda);

/// For the manifest of an installation, and for programs.
nlohmann::json to_json(const AcceleratedPackage& package);

} // namespace containerize::gpu
