// Intel: the kernel's devices, and Level Zero and OpenCL of the host where neither image nor environment
// brings a driver.
#include "gpu/injector.h"

#include <algorithm>
#include <array>

namespace containerize::gpu {

namespace {

constexpr std::string_view driver = "libze_intel_gpu.so.1";
// The driver loads the compiler (igc) by name.
constexpr std::array<std::string_view, 6> stems = {"libze_loader.so.", "libze_intel_gpu.so.",
                                                   "libigc.so.",       "libigdfcl.so.",
                                                   "libiga64.so.",     "libopencl-clang.so."};
constexpr const char* icd = "/etc/OpenCL/vendors/intel.icd";

} // namespace

void add_intel(Injector& injector, const Host&) {
    injector.add_node("/dev/dri"); // with by-path, by which ranks share memory
    const auto& request = injector.request();
    if (injector.image_has(std::string(driver)))
        return injector.note("Level Zero's driver is the image's own: the host's is left out.");
    if (request.environment != nullptr && request.environment->exists("/lib/" + std::string(driver)))
        return injector.note("Level Zero's driver is the one in " + request.prefix +
                             ": the host's is left out.");
    std::vector<std::string> names = {"libOpenCL.so.1"};
    for (const auto& [name, path] : injector.libraries().all())
        if (std::ranges::any_of(stems, [&](std::string_view stem) { return name.starts_with(stem); }))
            names.push_back(name);
    injector.add_with_needed(names);
    // It names the driver of OpenCL by its path, at which that must be then.
    auto library = injector.host().text(icd, 4096);
    library.resize(std::min(library.find_first_of("\r\n"), library.size()));
    if (!library.starts_with('/') || !injector.can_load(library)) return;
    injector.add_file(icd);
    injector.add_file(library);
}

} // namespace containerize::gpu
