#include "gpu/fit.h"

#include "core/text.h"
#include "gpu/driver_version.h"

#include <algorithm>

namespace containerize::gpu {

namespace {

/// Describes all devices; "no GPU" if there are none.
std::string devices_of(const Host& host) {
    std::string text;
    for (const auto vendor : all_vendors)
        if (const auto some = host.describe(vendor); !some.empty()) text += (text.empty() ? "" : "; ") + some;
    return text.empty() ? "no GPU" : text;
}

Vendor vendor_for(Accelerator accelerator) {
    return accelerator == Accelerator::rocm  ? Vendor::amd
           : accelerator == Accelerator::xpu ? Vendor::intel
                                             : Vendor::nvidia;
}

Fit compare_driver(const AcceleratedPackage& package, const Host& host) {
    const auto& driver = host.nvidia_driver;
    if (!package.lowest_driver.empty() && compare_versions(driver, package.lowest_driver) < 0)
        return {.fits = false,
                .reason = "It was built for " + package.purpose() + ", which needs NVIDIA's driver " +
                          package.lowest_driver + " or newer: this node has " + driver + "."};
    const auto own = driver_of_toolkit(package.toolkit);
    if (!own.empty() && compare_versions(driver, own) < 0)
        return {.fits = true,
                .reason =
                    "It was built for " + package.purpose() + ", and driver " + driver +
                    " is older than the " + own +
                    " of that release: it works, but for kernels that the driver would have to compile."};
    return {.fits = true,
            .reason = "It was built for " + package.purpose() + ": driver " + driver + " is new enough."};
}

Fit compare_targets(const AcceleratedPackage& package, const Host& host) {
    for (const auto* device : host.of(Vendor::amd)) {
        if (device->target.empty() || package.architectures.empty()) continue;
        if (std::ranges::find(package.architectures, device->target) != package.architectures.end()) continue;
        return {.fits = false,
                .reason = "It has code for " + joined(package.architectures, ", ") + ", and this node's " +
                          device->name + " is a " + device->target + "."};
    }
    return {.fits = true,
            .reason = "It was built for " + package.purpose() + ", which is for this node's GPUs."};
}

} // namespace

Fit compare(const AcceleratedPackage& package, const Host& host) {
    if (package.built_for == Accelerator::cpu) {
        if (host.devices.empty()) return {.fits = true, .reason = "It needs no GPU, and this node has none."};
        return {.fits = false,
                .reason = "It has no GPU support, and this node has " + devices_of(host) + "."};
    }
    const auto vendor = vendor_for(package.built_for);
    if (host.of(vendor).empty())
        return {.fits = false,
                .reason = "It was built for " + package.purpose() + ", and this node has " +
                          devices_of(host) + "."};
    if (host.driver(vendor).empty())
        return {.fits = false,
                .reason = "This node has " + devices_of(host) + ": the kernel's driver is not loaded."};
    if (package.built_for == Accelerator::cuda) return compare_driver(package, host);
    return compare_targets(package, host);
}

std::vector<std::string> build_warnings(const std::vector<AcceleratedPackage>& packages,
                                        const std::optional<Target>& target, const Host& host) {
    std::vector<std::string> warnings;
    for (const auto& package : packages) {
        const auto start = package.title() + " in this environment ";
        if (!package.lacks.empty()) warnings.push_back(start + "lacks " + package.lacks + ".");
        if (!target) {
            if (host.devices.empty()) continue;
            if (const auto fit = compare(package, host); !fit.fits)
                warnings.push_back(start + "does not fit this machine: " + fit.reason);
        } else if (package.built_for == Accelerator::cpu) {
            warnings.push_back(start + "has no GPU support, and it is to be for " +
                               std::string(name_of(target->accelerator)) + " " + target->toolkit + ".");
        } else if (package.built_for != target->accelerator) {
            warnings.push_back(start + "was built for " + package.purpose() + ", and it is to be for " +
                               std::string(name_of(target->accelerator)) + " " + target->toolkit + ".");
        } else if (package.built_for == Accelerator::cuda && !target->toolkit.empty() &&
                   major_version(package.toolkit) > major_version(target->toolkit)) {
            warnings.push_back(start + "was built for " + package.purpose() + ", which is newer than CUDA " +
                               target->toolkit + " of the nodes that it is to be for.");
        }
    }
    return warnings;
}

} // namespace containerize::gpu
