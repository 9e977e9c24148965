// AMD: finds GPUs as the kernel's compute driver (KFD) reports them. Injects device nodes, and ROCm's runtime
// only if neither image nor environment brings one, since it must match the libraries that use it.
#include "gpu/accelerator.h"
#include "gpu/fit.h"
#include "gpu/injector.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace containerize::gpu {

namespace {

/// Adds what the kernel's compute driver (KFD) reports, matched by render node.
void complete_devices(const TreeView& tree, std::vector<Device>& devices) {
    static const std::string topology = "/sys/class/kfd/kfd/topology/nodes";
    for (const auto& node : tree.list(topology)) {
        std::map<std::string, unsigned long long> properties;
        std::istringstream lines(tree.text(topology + "/" + node + "/properties"));
        std::string name;
        for (unsigned long long value = 0; lines >> name >> value;)
            properties.emplace(name, value);
        const auto target = gfx_target(static_cast<unsigned>(properties["gfx_target_version"]));
        if (target.empty()) continue;
        const auto render = "/dev/dri/renderD" + std::to_string(properties["drm_render_minor"]);
        for (auto& device : devices)
            if (std::ranges::find(device.nodes, render) != device.nodes.end()) device.target = target;
    }
}

std::string loaded_amd_driver(const TreeView& tree) {
    if (!tree.exists("/sys/module/amdgpu")) return {};
    const auto version = first_line(tree, "/sys/module/amdgpu/version");
    return version.empty() ? "amdgpu" : version; // the driver in the mainline kernel has no version
}

std::vector<std::string> rocm_directories(const TreeView& tree) {
    std::vector<std::string> directories;
    for (const auto& name : tree.list("/opt"))
        if (name.starts_with("rocm")) directories.push_back("/opt/" + name + "/lib");
    return directories;
}

const std::vector<std::string> runtime_stems = {"libamdhip64",   "libhsa-runtime64", "libamd_comgr",
                                                "libdrm_amdgpu", "libamd_smi",       "librocm_smi64",
                                                "libamdocl64"};

/// Whether a directory contains a library with this stem, in any version.
bool has_library(const TreeView& tree, const std::string& directory, std::string_view stem) {
    return std::ranges::any_of(tree.list(directory), [&](const std::string& name) {
        return name.starts_with(stem) && name.substr(stem.size()).starts_with(".so");
    });
}

/// The directory of a tree's own ROCm; empty if it has none.
std::string own_rocm(const TreeView& tree) {
    std::vector<std::string> directories = {"/lib",
                                            "/lib64",
                                            "/usr/lib",
                                            "/usr/lib64",
                                            "/usr/lib/x86_64-linux-gnu",
                                            "/usr/lib/aarch64-linux-gnu"};
    std::ranges::move(rocm_directories(tree), std::back_inserter(directories));
    for (const auto& site : site_packages(tree)) {
        directories.push_back(site + "/torch/lib");
        for (const auto& name : tree.list(site))
            if (name.starts_with("_rocm_sdk")) directories.push_back(site + "/" + name + "/lib");
    }
    for (const auto& directory : directories)
        if (has_library(tree, directory, "libamdhip64")) return directory;
    return {};
}

/// The host's names of the runtime libraries, with versions, as programs request them.
std::vector<std::string> names_on_host(const Libraries& libraries) {
    std::vector<std::string> names;
    for (const auto& [name, path] : libraries.all())
        for (const auto& stem : runtime_stems)
            if (name.starts_with(stem + ".so.")) names.push_back(name);
    return names;
}

void add_amd(Injector& injector, const Host& /*host*/) {
    injector.add_node("/dev/kfd");
    injector.add_node("/dev/dri"); // ROCm enumerates the whole directory
    for (const char* ids : {"/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids"})
        injector.add_file(ids);
    const auto& request = injector.request();
    auto own = own_rocm(request.image);
    if (own.empty() && request.environment != nullptr)
        if (const auto below = own_rocm(*request.environment); !below.empty()) own = request.prefix + below;
    if (!own.empty()) return injector.note("ROCm is used from " + own + ", not from the host.");
    injector.add_with_needed(names_on_host(injector.libraries()));
    injector.add_program("/opt/rocm/bin/rocminfo");
}

} // namespace

constinit const Vendor Vendor::amd = {
    .option = "amd",
    .name = "AMD",
    .platform = "rocm",
    .platform_name = "ROCm",
    .pci_id = 0x1002,
    .in_class_12 = true,
    .node = "/dev/kfd",
    .without = "ROCm programs find no device. The amdgpu driver creates it. Ask the administrator.",
    .runtime_option = "--rocm",
    .runtime_node = "/dev/kfd",
    .driver = loaded_amd_driver,
    .add_details = complete_devices,
    .library_directories = rocm_directories,
    .inject = add_amd,
    .fit = fit_by_targets,
};

std::string gfx_target(unsigned version) {
    if (version == 0) return {};
    constexpr std::string_view digits = "0123456789abcdef";
    return "gfx" + std::to_string(version / 10000) + digits[version / 100 % 100 % 16] +
           digits[version % 100 % 16];
}

} // namespace containerize::gpu
