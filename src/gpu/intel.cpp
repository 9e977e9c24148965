// Intel: injects device nodes, and the host's Level Zero and OpenCL if neither image nor environment brings a
// driver.
#include "gpu/fit.h"
#include "gpu/injector.h"

#include <algorithm>
#include <array>

namespace containerize::gpu {

namespace {

std::string loaded_intel_driver(const TreeView& tree) {
    for (const char* module : {"xe", "i915"})
        if (tree.exists(std::string("/sys/module/") + module)) return module;
    return {};
}

constexpr std::string_view level_zero = "libze_intel_gpu.so.1";
// With the compiler (igc), which the driver loads by name.
constexpr std::array<std::string_view, 6> stems = {"libze_loader.so.", "libze_intel_gpu.so.",
                                                   "libigc.so.",       "libigdfcl.so.",
                                                   "libiga64.so.",     "libopencl-clang.so."};
constexpr const char* icd = "/etc/OpenCL/vendors/intel.icd";

void add_intel(Injector& injector, const Host& /*host*/) {
    injector.add_node("/dev/dri"); // including by-path, which ranks need to share memory
    const auto& request = injector.request();
    if (injector.image_has(std::string(level_zero)))
        return injector.note("The Level Zero driver of the image is used, not the host's.");
    if (request.environment != nullptr && request.environment->exists("/lib/" + std::string(level_zero)))
        return injector.note("The Level Zero driver in " + request.prefix + " is used, not the host's.");
    std::vector<std::string> names = {"libOpenCL.so.1"};
    for (const auto& [name, path] : injector.libraries().all())
        if (std::ranges::any_of(stems, [&](std::string_view stem) { return name.starts_with(stem); }))
            names.push_back(name);
    injector.add_with_needed(names);
    // The file names the OpenCL driver by path, so mount that at the same path.
    auto library = injector.host().text(icd, 4096);
    library.resize(std::min(library.find_first_of("\r\n"), library.size()));
    if (!library.starts_with('/') || !injector.can_load(library)) return;
    injector.add_file(icd);
    injector.add_file(library);
}

} // namespace

constinit const Vendor Vendor::intel = {
    .option = "intel",
    .name = "Intel",
    .platform = "xpu",
    .platform_name = "Intel GPUs (XPU)",
    .pci_id = 0x8086,
    .node = "/dev/dri",
    .without = "SYCL programs find no device. The driver creates it. Ask the administrator.",
    .driver = loaded_intel_driver,
    .inject = add_intel,
    .fit = fit_by_targets,
};

} // namespace containerize::gpu
