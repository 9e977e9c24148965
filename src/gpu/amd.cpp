// AMD: injects device nodes, and ROCm's runtime only if neither image nor environment brings one, since it
// must match the libraries that use it.
#include "gpu/accelerator.h"
#include "gpu/injector.h"

#include <algorithm>

namespace containerize::gpu {

namespace {

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
    std::vector<std::string> directories = {"/lib", "/lib64", "/usr/lib", "/usr/lib64",
                                            "/usr/lib/x86_64-linux-gnu"};
    for (const auto& name : tree.list("/opt"))
        if (name.starts_with("rocm")) directories.push_back("/opt/" + name + "/lib");
    for (const auto& site : site_packages(tree)) {
        directories.push_back(site + "/torch/lib");
        for (const auto& name : tree.list(site))
            if (name.starts_with("_rocm_sdk")) directories.push_back(site + "/" + name + "/lib");
    }
    const auto found = std::ranges::find_if(
        directories, [&](const auto& one) { return has_library(tree, one, "libamdhip64"); });
    return found == directories.end() ? "" : *found;
}

/// The host's names of the runtime libraries, with versions, as programs request them.
std::vector<std::string> names_on_host(const Libraries& libraries) {
    std::vector<std::string> names;
    for (const auto& [name, path] : libraries.all())
        for (const auto& stem : runtime_stems)
            if (name.starts_with(stem + ".so.")) names.push_back(name);
    return names;
}

} // namespace

void add_amd(Injector& injector, const Host&) {
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

} // namespace containerize::gpu
