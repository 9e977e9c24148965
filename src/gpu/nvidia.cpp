// NVIDIA: uses a CDI specification if the site has one, otherwise the libraries of the driver, whose file
// names all contain its version.
#include "core/text.h"
#include "elf/read_elf.h"
#include "gpu/cdi.h"
#include "gpu/driver_version.h"
#include "gpu/fit.h"
#include "gpu/injector.h"
#include "gpu/libraries.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

namespace containerize::gpu {

namespace {

using launch::EnvironmentChange;
using Names = std::span<const std::string_view>;

/// The value in a line "Key: \t value".
std::string value_of(const std::string& text, std::string_view key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(key)) continue;
        const auto start = line.find_first_not_of(" \t:", key.size());
        return start == std::string::npos ? "" : line.substr(start, line.find_last_not_of(" \t") - start + 1);
    }
    return {};
}

std::string loaded_nvidia_driver(const TreeView& tree) {
    if (auto version = first_line(tree, "/sys/module/nvidia/version"); !version.empty()) return version;
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build ..."
    std::istringstream words(value_of(tree.text("/proc/driver/nvidia/version"), "NVRM version"));
    for (std::string word; words >> word;)
        if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
            return word;
    return {};
}

/// Maps the driver's capabilities to minor device numbers: "gpu0/gi1/access" to 12.
std::map<std::string, unsigned> mig_minors(const TreeView& tree) {
    std::map<std::string, unsigned> minors;
    std::istringstream lines(tree.text("/proc/driver/nvidia-caps/mig-minors"));
    std::string name;
    for (unsigned minor = 0; lines >> name >> minor;)
        minors.emplace(name, minor);
    return minors;
}

/// The number after `prefix`: 3 in "gi3"; nothing for other names.
std::optional<unsigned> numbered(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    return to_number<unsigned>(name.substr(prefix.size()));
}

/// The existing instances; the list of minors contains all possible ones.
std::vector<MigInstance> mig_instances(const TreeView& tree, const std::string& gpu,
                                       const std::map<std::string, unsigned>& minors) {
    const auto node = [&](const std::string& right) {
        const auto minor = minors.find(right);
        return minor == minors.end() ? "" : "/dev/nvidia-caps/nvidia-cap" + std::to_string(minor->second);
    };
    std::vector<MigInstance> instances;
    const std::string directory = "/proc/driver/nvidia/capabilities/" + gpu + "/mig";
    for (const auto& gi : tree.list(directory)) {
        const auto gpu_instance = numbered(gi, "gi");
        if (!gpu_instance) continue;
        for (const auto& ci : tree.list(directory + "/" + gi)) {
            const auto compute_instance = numbered(ci, "ci");
            if (!compute_instance) continue;
            MigInstance instance{.gpu_instance = *gpu_instance, .compute_instance = *compute_instance};
            for (const auto& right : {gpu + "/" + gi + "/access", gpu + "/" + gi + "/" + ci + "/access"})
                if (auto path = node(right); !path.empty()) instance.nodes.push_back(std::move(path));
            instances.push_back(std::move(instance));
        }
    }
    return instances;
}

Device unnamed_device(const std::string& address) {
    return {.vendor = &Vendor::nvidia, .address = address, .name = "NVIDIA GPU"};
}

/// Adds what the driver reports about its GPUs.
void add_reported(const TreeView& tree, std::vector<Device>& devices) {
    const auto minors = mig_minors(tree);
    for (const auto& address : tree.list("/proc/driver/nvidia/gpus")) {
        const auto about = tree.text("/proc/driver/nvidia/gpus/" + address + "/information");
        auto device = std::ranges::find(devices, address, &Device::address);
        if (device == devices.end()) device = devices.insert(devices.end(), unnamed_device(address));
        if (auto model = value_of(about, "Model"); !model.empty()) device->name = std::move(model);
        device->uuid = value_of(about, "GPU UUID");
        const auto minor = value_of(about, "Device Minor");
        if (minor.empty()) continue;
        device->nodes.insert(device->nodes.begin(), "/dev/nvidia" + minor);
        device->mig = mig_instances(tree, "gpu" + minor, minors);
    }
}

/// Some virtual machines and containers have device nodes, but no entries in /sys or /proc.
void add_nodes(const TreeView& tree, std::vector<Device>& devices) {
    if (std::ranges::find(devices, &Vendor::nvidia, &Device::vendor) != devices.end()) return;
    for (const auto& name : tree.list("/dev"))
        if (numbered(name, "nvidia")) {
            devices.push_back(unnamed_device({}));
            devices.back().nodes.push_back("/dev/" + name);
        }
}

void complete_devices(const TreeView& tree, std::vector<Device>& devices) {
    add_reported(tree, devices);
    add_nodes(tree, devices);
}

Fit fit_by_driver(const AcceleratedPackage& package, const Host& host) {
    const auto& driver = host.driver(Vendor::nvidia);
    if (!package.lowest_driver.empty() && compare_versions(driver, package.lowest_driver) < 0)
        return {.fits = false,
                .reason = "It was built for " + package.purpose() + ", which needs NVIDIA driver " +
                          package.lowest_driver + " or newer. This node has " + driver + "."};
    const auto own = driver_of_toolkit(package.toolkit);
    if (!own.empty() && compare_versions(driver, own) < 0)
        return {.fits = true,
                .reason = "It was built for " + package.purpose() + ". Driver " + driver + " is older than " +
                          own +
                          ", the driver of that release. It works, except for GPU kernels that the driver "
                          "would have to compile."};
    return {.fits = true,
            .reason = "It was built for " + package.purpose() + ": driver " + driver + " is new enough."};
}

// The capabilities in NVIDIA_DRIVER_CAPABILITIES and their files, as in NVIDIA's libnvidia-container
// (src/nvc_info.c).
constexpr std::array<std::string_view, 3> utility_libraries = {"libnvidia-ml", "libnvidia-cfg",
                                                               "libnvidia-nscq"};
constexpr std::array<std::string_view, 12> compute_libraries = {"libcuda",
                                                                "libcudadebugger",
                                                                "libnvidia-opencl",
                                                                "libnvidia-gpucomp",
                                                                "libnvidia-ptxjitcompiler",
                                                                "libnvidia-fatbinaryloader",
                                                                "libnvidia-allocator",
                                                                "libnvidia-compiler",
                                                                "libnvidia-pkcs11",
                                                                "libnvidia-pkcs11-openssl3",
                                                                "libnvidia-nvvm",
                                                                "libnvidia-tileiras"};
constexpr std::array<std::string_view, 4> video_libraries = {"libvdpau_nvidia", "libnvidia-encode",
                                                             "libnvidia-opticalflow", "libnvcuvid"};
constexpr std::array<std::string_view, 20> graphics_libraries = {
    "libnvidia-eglcore",   "libnvidia-glcore",   "libnvidia-tls",         "libnvidia-glsi",
    "libnvidia-fbc",       "libnvidia-ifr",      "libnvidia-rtcore",      "libnvoptix",
    "libGLX_nvidia",       "libEGL_nvidia",      "libGLESv2_nvidia",      "libGLESv1_CM_nvidia",
    "libnvidia-glvkspirv", "libnvidia-cbl",      "libnvidia-egl-wayland", "libnvidia-egl-gbm",
    "libnvidia-egl-xcb",   "libnvidia-egl-xlib", "libnvidia-vksc-core",   "libnvidia-api"};
constexpr std::array<std::string_view, 1> ngx_libraries = {"libnvidia-ngx"};
constexpr std::array<std::string_view, 2> utility_programs = {"nvidia-smi", "nvidia-debugdump"};
constexpr std::array<std::string_view, 2> compute_programs = {"nvidia-cuda-mps-control",
                                                              "nvidia-cuda-mps-server"};

struct Capability {
    std::string_view name;
    Names libraries, programs;
};
constexpr std::array<Capability, 5> capabilities = {{{"utility", utility_libraries, utility_programs},
                                                     {"compute", compute_libraries, compute_programs},
                                                     {"video", video_libraries, {}},
                                                     {"graphics", graphics_libraries, {}},
                                                     {"ngx", ngx_libraries, {}}}};

// Vendor-neutral: taken from the host only if the image has none.
const std::vector<std::string> graphics_loaders = {
    "libGL.so.1",     "libGLX.so.0",       "libEGL.so.1",        "libOpenGL.so.0",
    "libGLESv2.so.2", "libGLESv1_CM.so.1", "libGLdispatch.so.0", "libvulkan.so.1"};
constexpr std::array<const char*, 12> graphics_files = {
    "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "/etc/glvnd/egl_vendor.d/10_nvidia.json",
    "/usr/share/vulkan/icd.d/nvidia_icd.json",
    "/etc/vulkan/icd.d/nvidia_icd.json",
    "/usr/share/vulkan/icd.d/nvidia_layers.json",
    "/usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
    "/etc/vulkan/implicit_layer.d/nvidia_layers.json",
    "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
    "/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
    "/usr/share/egl/egl_external_platform.d/20_nvidia_xcb.json",
    "/usr/share/egl/egl_external_platform.d/20_nvidia_xlib.json",
    "/usr/share/nvidia/nvoptix.bin"};
// The last one is where virtual machines of cloud providers mount the driver.
constexpr std::array<const char*, 5> program_directories = {"/usr/bin", "/usr/sbin", "/bin", "/opt/bin",
                                                            "/usr/local/nvidia/bin"};

std::string_view stem_of(std::string_view file) {
    return file.substr(0, file.find(".so"));
}

std::vector<std::string> words_of(const std::string& list) {
    std::vector<std::string> words;
    for (const auto word : split(list, ','))
        if (!word.empty()) words.emplace_back(word);
    return words;
}

/// "570.86.15" for "libcuda.so.570.86.15"; empty for other files.
std::string version_of_libcuda(std::string_view file) {
    constexpr std::string_view start = "libcuda.so.";
    const auto version = file.starts_with(start) ? file.substr(start.size()) : std::string_view();
    return version.find('.') == std::string_view::npos ? "" : std::string(version);
}

class Nvidia {
public:
    Nvidia(Injector& injector, const Host& host)
        : injector_(injector), host_(host), driver_(host.driver(Vendor::nvidia)) {}

    void add() {
        const auto visible = injector_.variable("NVIDIA_VISIBLE_DEVICES");
        if (visible && (visible->empty() || *visible == "none" || *visible == "void"))
            return injector_.note("No NVIDIA GPUs are used: NVIDIA_VISIBLE_DEVICES is '" + *visible + "'.");
        wanted_ = words_of(visible.value_or("all"));
        read_capabilities();
        bool allows_compat = true;
        if (!add_by_cdi(allows_compat)) add_by_list();
        if (allows_compat) prefer_newer_libcuda();
    }

private:
    void read_capabilities() {
        const auto given = injector_.variable("NVIDIA_DRIVER_CAPABILITIES");
        for (const auto& word : words_of(given.value_or("compute,utility"))) {
            if (word == "display") {
                capabilities_.insert("graphics");
            } else if (word == "all") {
                for (const auto& capability : capabilities)
                    capabilities_.emplace(capability.name);
            } else if (std::ranges::find(capabilities, word, &Capability::name) != capabilities.end()) {
                capabilities_.insert(word);
            } else {
                injector_.note("NVIDIA_DRIVER_CAPABILITIES contains '" + word + "', which is ignored.");
            }
        }
    }

    [[nodiscard]] bool has(std::string_view capability) const {
        return capabilities_.contains(std::string(capability));
    }

    /// Whether it is a library of a capability that was requested, or of one that was not.
    [[nodiscard]] bool is_of_capability(std::string_view file, bool requested) const {
        return std::ranges::any_of(capabilities, [&](const Capability& capability) {
            return has(capability.name) == requested &&
                   std::ranges::find(capability.libraries, stem_of(file)) != capability.libraries.end();
        });
    }
    [[nodiscard]] bool is_wanted(std::string_view file) const { return is_of_capability(file, true); }
    [[nodiscard]] bool is_unwanted(std::string_view file) const { return is_of_capability(file, false); }

    // Without a CDI specification.

    void add_by_list() {
        add_libraries();
        for (const auto& capability : capabilities)
            if (has(capability.name))
                for (const auto& program : capability.programs)
                    add_first(program);
        if (has("compute")) {
            injector_.add_with_needed({"libOpenCL.so.1"});
            injector_.add_file("/etc/OpenCL/vendors/nvidia.icd");
        }
        if (has("graphics")) {
            injector_.add_with_needed(graphics_loaders);
            for (const char* file : graphics_files)
                injector_.add_file(file);
        }
        add_sockets();
        add_nodes();
    }

    void add_libraries() {
        const auto ending = ".so." + driver_;
        std::map<std::string, bool> files; // value: the image can use the file
        for (const auto& [name, path] : injector_.libraries().all()) {
            if (!is_wanted(name)) continue;
            const auto real = injector_.host().resolve(path);
            // Other files belong to a driver that is not running, or are for 32-bit programs.
            if (!real || !real->ends_with(ending) || !injector_.is_for_image(*real)) continue;
            const std::string file(name_of(*real));
            const auto known = files.find(file);
            if (known == files.end())
                files.emplace(file, injector_.add_library(path));
            else if (known->second)
                injector_.add_link(name, file);
        }
        if (std::ranges::none_of(files, [](const auto& one) { return one.second; }))
            injector_.note("No library of driver " + driver_ +
                           " can be used in the image, so its programs find no CUDA. The driver's files "
                           "(libcuda.so." +
                           driver_ + ") must be on this node.");
    }

    /// The first one that is no script, which would need files of the host.
    void add_first(std::string_view program) {
        std::string script;
        for (const char* directory : program_directories) {
            const auto path = std::string(directory) + "/" + std::string(program);
            const auto real = injector_.host().resolve(path);
            if (real && injector_.is_for_image(*real)) return injector_.add_program(path);
            if (real && script.empty()) script = path;
        }
        if (!script.empty()) injector_.add_program(script); // notes why it cannot be used
    }

    void add_sockets() {
        for (const char* socket : {"/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"})
            injector_.add_file(socket);
        if (has("compute"))
            injector_.add_file(injector_.variable("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps"));
    }

    void add_nodes() {
        for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                 "/dev/nvidia-modeset", "/dev/gdrdrv", "/dev/nvidia-caps-imex-channels"})
            injector_.add_node(node);
        const auto devices = host_.of(Vendor::nvidia);
        std::set<std::string> unknown(wanted_.begin(), wanted_.end());
        for (std::size_t index = 0; index < devices.size(); ++index)
            for (const auto& word : wanted_)
                if (add_device(*devices[index], index, word)) unknown.erase(word);
        note_unknown(unknown);
    }

    void note_unknown(const std::set<std::string>& words) {
        for (const auto& word : words)
            injector_.note("NVIDIA_VISIBLE_DEVICES contains '" + word + "', but this node has " +
                           host_.describe(Vendor::nvidia) + ".");
    }

    /// Returns whether `word` names this device or a part of it, and adds the nodes.
    bool add_device(const Device& device, std::size_t index, const std::string& word) {
        const auto number = std::to_string(index);
        // No file tells an instance's UUID, so any "MIG-..." grants all instances.
        const bool whole = word == "all" || word == number || (!device.uuid.empty() && word == device.uuid) ||
                           (word.starts_with("MIG-") && !device.mig.empty());
        if (!whole && !(word.starts_with(number + ":") && !device.mig.empty())) return false;
        bool found = whole;
        for (std::size_t part = 0; part < device.mig.size(); ++part) {
            if (!whole && word != number + ":" + std::to_string(part)) continue;
            found = true;
            for (const auto& node : device.mig[part].nodes)
                injector_.add_node(node);
        }
        if (!found) return false;
        for (const auto& node : device.nodes)
            if (!node.starts_with("/dev/dri/") || has("graphics")) injector_.add_node(node);
        return true;
    }

    /// Returns whether there was a usable CDI specification.
    bool add_by_cdi(bool& allows_compat) {
        std::vector<std::string> notes;
        const auto specifications = read_cdi(injector_.host(), "nvidia.com/gpu", notes);
        for (auto& note : notes)
            injector_.note(std::move(note));
        std::vector<const CdiEdits*> edits;
        std::set<std::string> used; // names of devices: the first file with a name wins
        for (const auto& specification : specifications) {
            if (!is_current(specification)) continue;
            for (const auto& why : specification.refused)
                injector_.note("Not used from the CDI specification " + specification.file + ": " + why +
                               ".");
            const auto before = edits.size();
            for (const auto& [name, device] : specification.devices)
                if (names_device(specification, name) && used.insert(name).second) edits.push_back(&device);
            if (edits.size() == before) continue;
            edits.push_back(&specification.common);
            injector_.note("Using the CDI specification " + specification.file + ".");
        }
        if (edits.empty()) return false;
        std::set<std::string> unknown(wanted_.begin(), wanted_.end());
        unknown.erase("all");
        for (const auto& name : used)
            unknown.erase(name);
        note_unknown(unknown);
        allows_compat = std::ranges::any_of(edits, &CdiEdits::cuda_compat);
        for (const auto* one : edits)
            apply(*one);
        return true;
    }

    [[nodiscard]] bool names_device(const CdiSpecification& specification, const std::string& name) const {
        const auto wanted = [&](std::string_view word) {
            return std::ranges::find(wanted_, word) != wanted_.end();
        };
        if (!wanted("all")) return wanted(name);
        const bool has_all =
            std::ranges::any_of(specification.devices, [](const auto& one) { return one.first == "all"; });
        return !has_all || name == "all";
    }

    /// After a driver upgrade, the specification names files of the old driver until it is regenerated.
    bool is_current(const CdiSpecification& specification) {
        for (const auto& [source, target] : specification.common.mounts) {
            const auto version = version_of_libcuda(name_of(source));
            if (version.empty() || version == driver_) continue;
            injector_.note("The CDI specification " + specification.file + " is for driver " + version +
                           ", and " + driver_ +
                           " is running, so it is not used. `nvidia-ctk cdi generate` updates it.");
            return false;
        }
        return true;
    }

    void apply(const CdiEdits& edits) {
        for (const auto& [source, target] : edits.mounts)
            apply_mount(source, target);
        for (const auto& [path, target] : edits.links)
            if (is_library(path) && is_library(target) && !is_unwanted(name_of(path)))
                injector_.add_link(name_of(path), name_of(target));
        for (const auto& node : edits.nodes)
            injector_.add_node(node);
        for (const auto& [name, value] : edits.environment)
            injector_.change({.kind = EnvironmentChange::Kind::set, .name = name, .value = value});
    }

    /// Places libraries and programs where they cover nothing in the image, whatever target the specification
    /// gives.
    void apply_mount(const std::string& source, const std::string& target) {
        const auto real = injector_.host().resolve(source);
        if (!real)
            return injector_.note("Not used: " + source +
                                  ", which a CDI specification lists: it is missing.");
        if (const auto why = mount_objection(*real); !why.empty())
            return injector_.note("Not used: " + source + ", which is a link to " + *real + ": " + why + ".");
        if (is_library(source)) {
            if (!is_unwanted(name_of(source)) && !is_unwanted(name_of(*real))) injector_.add_library(source);
        } else if (target.find("/bin/") != std::string::npos || target.find("/sbin/") != std::string::npos) {
            injector_.add_program(source);
        } else if (!target.starts_with("/lib/firmware/") && !target.starts_with("/usr/lib/firmware/")) {
            injector_.add_file(source, target); // except firmware, which is for the kernel
        }
    }

    static bool is_library(std::string_view path) {
        return name_of(path).starts_with("lib") && name_of(path).find(".so") != std::string_view::npos;
    }

    /// Forward compatibility: prefers a libcuda of the image or environment if it is of a newer release than
    /// the driver.
    void prefer_newer_libcuda() {
        std::vector<std::pair<std::string, std::string>> found; // directory inside, version
        const auto look = [&](const TreeView& tree, const std::string& prefix, const std::string& directory) {
            for (const auto& file : tree.list(directory))
                if (auto version = version_of_libcuda(file); !version.empty())
                    found.emplace_back(prefix + directory, version);
        };
        const auto& request = injector_.request();
        for (const auto& name : request.image.list("/usr/local"))
            if (name.starts_with("cuda")) look(request.image, "", "/usr/local/" + name + "/compat");
        if (request.environment != nullptr) look(*request.environment, request.prefix, "/cuda-compat");
        // Within a release, minor-version compatibility makes the driver's own library sufficient.
        std::erase_if(found,
                      [&](const auto& one) { return major_version(one.second) <= major_version(driver_); });
        if (found.empty()) return;
        const auto& [directory, version] = *std::ranges::max_element(
            found, [](const auto& a, const auto& b) { return compare_versions(a.second, b.second) < 0; });
        if (const auto other = not_for_data_centres(); !other.empty())
            return injector_.note("The libcuda " + version + " in " + directory + " is newer than driver " +
                                  driver_ +
                                  ", but it is not used, because it supports only data-centre GPUs, and this "
                                  "is a " +
                                  other + ".");
        injector_.note(
            "The libcuda " + version + " in " + directory + " is used, because driver " + driver_ +
            " is older (CUDA forward compatibility on data-centre GPUs, which are recognised by name).");
        injector_.change(
            {.kind = EnvironmentChange::Kind::prepend, .name = "LD_LIBRARY_PATH", .value = directory});
    }

    /// The name of a GPU that is not for data centres, judged by its series; empty if there is none.
    [[nodiscard]] std::string not_for_data_centres() const {
        for (const auto* device : host_.of(Vendor::nvidia))
            for (const char* series : {"GeForce", "RTX", "Quadro", "TITAN", "NVS", "Orin", "NVIDIA GPU"})
                if (device->name.find(series) != std::string::npos) return device->name;
        return {};
    }

    Injector& injector_;
    const Host& host_;
    const std::string& driver_;
    std::vector<std::string> wanted_; ///< words of NVIDIA_VISIBLE_DEVICES
    std::set<std::string> capabilities_;
};

} // namespace

std::string nvidia_driver(const TreeView& tree) {
    if (auto loaded = loaded_nvidia_driver(tree); !loaded.empty()) return loaded;
    const auto library = Libraries(tree).find("libcuda.so.1", elf::this_machine);
    const auto file = library ? tree.resolve(*library) : std::nullopt;
    return file ? version_of_libcuda(name_of(*file)) : std::string();
}

constinit const Vendor Vendor::nvidia = {
    .option = "nvidia",
    .name = "NVIDIA",
    .platform = "cuda",
    .platform_name = "CUDA",
    .pci_id = 0x10de,
    .node = "/dev/nvidia-uvm",
    .without =
        "CUDA programs will fail with an unknown error. `nvidia-modprobe -u`, or any CUDA program run by "
        "root, creates it.",
    .runtime_option = "--nv",
    .runtime_node = "/dev/nvidiactl",
    .driver = loaded_nvidia_driver,
    .add_details = complete_devices,
    .inject = [](Injector& injector, const Host& host) { Nvidia(injector, host).add(); },
    .fit = fit_by_driver,
};

} // namespace containerize::gpu
