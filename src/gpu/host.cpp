#include "gpu/host.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

namespace containerize::gpu {

namespace {

std::string first_line(const TreeView& tree, const std::string& path) {
    auto text = tree.text(path, 4096);
    text.resize(std::min(text.find('\n'), text.size()));
    while (text.ends_with(' '))
        text.pop_back();
    return text;
}

unsigned number(std::string_view text, int base = 10) {
    if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
    unsigned value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, base);
    return value;
}

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

std::optional<Vendor> vendor_of(unsigned id) {
    switch (id) {
    case 0x10de:
        return Vendor::nvidia;
    case 0x1002:
        return Vendor::amd;
    case 0x8086:
        return Vendor::intel;
    default:
        return std::nullopt;
    }
}

/// Class 03 is display controllers, with or without outputs. AMD's newer accelerators are in class 12
/// (processing accelerators), which Intel uses for other devices.
bool is_gpu(Vendor vendor, unsigned pci_class) {
    const unsigned base = pci_class >> 16U;
    return base == 0x03 || (base == 0x12 && vendor == Vendor::amd);
}

/// A device's name in the PCI ID database, which many hosts have.
std::string name_in_database(const TreeView& tree, std::string_view vendor, std::string_view device) {
    static constexpr std::array places = {"/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"};
    constexpr std::size_t largest = 16U << 20U;
    for (const char* place : places) {
        std::istringstream lines(tree.text(place, largest));
        bool ours = false;
        for (std::string line; std::getline(lines, line);) {
            if (line.empty() || line.front() == '#') continue;
            if (line.front() != '\t') ours = line.starts_with(vendor);
            if (!ours || line.size() < 8 || line[1] == '\t' || line.substr(1, 4) != device) continue;
            // "Ponte Vecchio XT (2 Tile) [Data Center GPU Max 1550]": the common name is in brackets.
            const auto open = line.find('['), close = line.rfind(']');
            return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1)
                                                              : line.substr(7);
        }
    }
    return {};
}

std::string pci_name(const TreeView& tree, Vendor vendor, const std::string& directory) {
    const auto without_0x = [&](const char* file) {
        const auto id = first_line(tree, directory + file);
        return id.starts_with("0x") ? id.substr(2) : id;
    };
    const auto vendor_id = without_0x("/vendor"), device_id = without_0x("/device");
    // AMD's server cards report their name.
    if (auto own = first_line(tree, directory + "/product_name"); !own.empty()) return own;
    const auto known = name_in_database(tree, vendor_id, device_id);
    if (known.empty()) return "PCI device " + vendor_id + ":" + device_id;
    return std::string(name_of(vendor)) + " " + known;
}

std::vector<std::string> drm_nodes(const TreeView& tree, const std::string& pci_directory) {
    std::vector<std::string> nodes;
    for (const auto& name : tree.list(pci_directory + "/drm"))
        if (name.starts_with("card") || name.starts_with("renderD")) nodes.push_back("/dev/dri/" + name);
    return nodes;
}

/// The address of graphics in Intel's processors, which are useless for computing.
constexpr std::string_view integrated_graphics = "0000:00:02.0";

std::vector<Device> pci_devices(const TreeView& tree) {
    static const std::string bus = "/sys/bus/pci/devices";
    std::vector<Device> devices;
    for (const auto& address : tree.list(bus)) {
        const auto directory = bus + "/" + address;
        const auto vendor = vendor_of(number(first_line(tree, directory + "/vendor"), 16));
        if (!vendor || !is_gpu(*vendor, number(first_line(tree, directory + "/class"), 16))) continue;
        if (address == integrated_graphics) continue;
        devices.push_back({.vendor = *vendor,
                           .address = address,
                           .name = pci_name(tree, *vendor, directory),
                           .uuid = {},
                           .target = {},
                           .nodes = drm_nodes(tree, directory),
                           .mig = {}});
    }
    return devices;
}

std::string nvidia_version(const TreeView& tree) {
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
    name.remove_prefix(prefix.size());
    if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    return number(name);
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
            MigInstance instance{
                .gpu_instance = *gpu_instance, .compute_instance = *compute_instance, .nodes = {}};
            for (const auto& right : {gpu + "/" + gi + "/access", gpu + "/" + gi + "/" + ci + "/access"})
                if (auto path = node(right); !path.empty()) instance.nodes.push_back(std::move(path));
            instances.push_back(std::move(instance));
        }
    }
    return instances;
}

Device nvidia_device(const std::string& address) {
    return {.vendor = Vendor::nvidia,
            .address = address,
            .name = "NVIDIA GPU",
            .uuid = {},
            .target = {},
            .nodes = {},
            .mig = {}};
}

/// Adds what the driver reports about its GPUs.
void add_nvidia_details(const TreeView& tree, std::vector<Device>& devices) {
    const auto minors = mig_minors(tree);
    for (const auto& address : tree.list("/proc/driver/nvidia/gpus")) {
        const auto about = tree.text("/proc/driver/nvidia/gpus/" + address + "/information");
        auto device = std::ranges::find(devices, address, &Device::address);
        if (device == devices.end()) device = devices.insert(devices.end(), nvidia_device(address));
        if (auto model = value_of(about, "Model"); !model.empty()) device->name = std::move(model);
        device->uuid = value_of(about, "GPU UUID");
        const auto minor = value_of(about, "Device Minor");
        if (minor.empty()) continue;
        device->nodes.insert(device->nodes.begin(), "/dev/nvidia" + minor);
        device->mig = mig_instances(tree, "gpu" + minor, minors);
    }
}

/// Some virtual machines and containers have device nodes, but no entries in /sys or /proc.
void add_nvidia_nodes(const TreeView& tree, std::vector<Device>& devices) {
    if (std::ranges::find(devices, Vendor::nvidia, &Device::vendor) != devices.end()) return;
    for (const auto& name : tree.list("/dev"))
        if (numbered(name, "nvidia")) {
            devices.push_back(nvidia_device({}));
            devices.back().nodes.push_back("/dev/" + name);
        }
}

/// Adds what the kernel's compute driver (KFD) reports, matched by render node.
void add_amd_details(const TreeView& tree, std::vector<Device>& devices) {
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

std::string amd_version(const TreeView& tree) {
    if (!tree.exists("/sys/module/amdgpu")) return {};
    const auto version = first_line(tree, "/sys/module/amdgpu/version");
    return version.empty() ? "amdgpu" : version; // the driver in the mainline kernel has no version
}

std::string intel_driver(const TreeView& tree) {
    for (const char* module : {"xe", "i915"})
        if (tree.exists(std::string("/sys/module/") + module)) return module;
    return {};
}

} // namespace

std::string_view name_of(Vendor vendor) {
    static constexpr std::array<std::string_view, 3> names = {"NVIDIA", "AMD", "Intel"};
    return names[static_cast<std::size_t>(vendor)];
}

std::string gfx_target(unsigned version) {
    if (version == 0) return {};
    constexpr std::string_view digits = "0123456789abcdef";
    return "gfx" + std::to_string(version / 10000) + digits[version / 100 % 100 % 16] +
           digits[version % 100 % 16];
}

std::vector<const Device*> Host::of(Vendor vendor) const {
    std::vector<const Device*> found;
    for (const auto& device : devices)
        if (device.vendor == vendor) found.push_back(&device);
    return found;
}

const std::string& Host::driver(Vendor vendor) const {
    return vendor == Vendor::nvidia ? nvidia_driver : vendor == Vendor::amd ? amd_driver : intel_driver;
}

std::string Host::describe(Vendor vendor) const {
    std::vector<std::pair<std::string, std::size_t>> models;
    for (const auto* device : of(vendor)) {
        const auto name = device->target.empty() ? device->name : device->name + " (" + device->target + ")";
        const auto same = std::ranges::find(models, name, [](const auto& model) { return model.first; });
        if (same == models.end())
            models.emplace_back(name, 1);
        else
            ++same->second;
    }
    std::string text;
    for (const auto& [name, count] : models)
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + name;
    if (text.empty()) return {};
    return text + (driver(vendor).empty() ? ", no driver" : ", driver " + driver(vendor));
}

Host discover(const TreeView& tree) {
    Host host{.devices = pci_devices(tree),
              .nvidia_driver = nvidia_version(tree),
              .amd_driver = amd_version(tree),
              .intel_driver = intel_driver(tree)};
    add_nvidia_details(tree, host.devices);
    add_nvidia_nodes(tree, host.devices);
    add_amd_details(tree, host.devices);
    std::ranges::sort(host.devices, {}, [](const Device& device) {
        return std::tuple(device.vendor, device.address, device.nodes);
    });
    return host;
}

std::string obstacle(const TreeView& tree, const Host& host, Vendor vendor) {
    if (host.of(vendor).empty()) return {};
    const std::string name(name_of(vendor));
    if (host.driver(vendor).empty())
        return "The kernel driver for " + name + " devices is not loaded. Only an administrator can load it.";
    const auto missing = [&](const char* node, const char* what) {
        return tree.exists(node) ? "" : std::string(node) + " is missing: " + what;
    };
    switch (vendor) {
    case Vendor::nvidia:
        return missing("/dev/nvidia-uvm", "CUDA programs will fail with an unknown error. `nvidia-modprobe "
                                          "-u`, or any CUDA program run by root, creates it.");
    case Vendor::amd:
        return missing("/dev/kfd",
                       "ROCm programs find no device. The amdgpu driver creates it. Ask the administrator.");
    case Vendor::intel:
        return missing("/dev/dri",
                       "SYCL programs find no device. The driver creates it. Ask the administrator.");
    }
    return {};
}

} // namespace containerize::gpu
