#include "gpu/host.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <tuple>
#include <utility>

namespace containerize::gpu {

namespace {

/// The number in a file of /sys, such as "0x10de".
unsigned hexadecimal(const TreeView& tree, const std::string& path) {
    const auto text = first_line(tree, path);
    unsigned value = 0;
    const auto start = text.starts_with("0x") ? 2 : 0;
    std::from_chars(text.data() + start, text.data() + text.size(), value, 16);
    return value;
}

/// The vendor of a GPU on the PCI bus; null for other devices. Class 03 is display controllers, with or
/// without outputs. Class 12 is processing accelerators, which are GPUs of some vendors and other devices of
/// others.
const Vendor* vendor_of_gpu(const TreeView& tree, const std::string& directory) {
    const auto id = hexadecimal(tree, directory + "/vendor");
    const auto* const vendor = std::ranges::find(vendors, id, &Vendor::pci_id);
    if (vendor == vendors.end()) return nullptr;
    const auto kind = hexadecimal(tree, directory + "/class") >> 16U;
    return kind == 0x03 || (kind == 0x12 && (*vendor)->in_class_12) ? *vendor : nullptr;
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

std::string pci_name(const TreeView& tree, const Vendor& vendor, const std::string& directory) {
    const auto without_0x = [&](const char* file) {
        const auto id = first_line(tree, directory + file);
        return id.starts_with("0x") ? id.substr(2) : id;
    };
    // AMD's server cards report their name.
    if (auto own = first_line(tree, directory + "/product_name"); !own.empty()) return own;
    const auto vendor_id = without_0x("/vendor"), device_id = without_0x("/device");
    const auto known = name_in_database(tree, vendor_id, device_id);
    if (known.empty()) return "PCI device " + vendor_id + ":" + device_id;
    return std::string(vendor.name) + " " + known;
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
        const auto* vendor = vendor_of_gpu(tree, directory);
        if (vendor == nullptr || address == integrated_graphics) continue;
        devices.push_back({.vendor = vendor,
                           .address = address,
                           .name = pci_name(tree, *vendor, directory),
                           .nodes = drm_nodes(tree, directory)});
    }
    return devices;
}

} // namespace

std::vector<const Device*> Host::of(const Vendor& vendor) const {
    std::vector<const Device*> found;
    for (const auto& device : devices)
        if (device.vendor == &vendor) found.push_back(&device);
    return found;
}

std::string Host::describe(const Vendor& vendor) const {
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
    Host host{.devices = pci_devices(tree)};
    for (const auto* vendor : vendors) {
        host.drivers[vendor] = vendor->driver(tree);
        if (vendor->add_details != nullptr) vendor->add_details(tree, host.devices);
    }
    std::ranges::sort(host.devices, {}, [](const Device& device) {
        return std::tuple(std::ranges::find(vendors, device.vendor), device.address, device.nodes);
    });
    return host;
}

std::string obstacle(const TreeView& tree, const Host& host, const Vendor& vendor) {
    if (host.of(vendor).empty()) return {};
    if (host.driver(vendor).empty())
        return "The kernel driver for " + std::string(vendor.name) +
               " devices is not loaded. Only an administrator can load it.";
    if (tree.exists(vendor.node)) return {};
    return std::string(vendor.node) + " is missing: " + std::string(vendor.without);
}

std::string first_line(const TreeView& tree, const std::string& path) {
    auto text = tree.text(path, 4096);
    text.resize(std::min(text.find('\n'), text.size()));
    while (text.ends_with(' '))
        text.pop_back();
    return text;
}

} // namespace containerize::gpu
