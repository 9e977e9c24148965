#include "gpu/fit.h"

#include "core/text.h"
#include "gpu/driver_version.h"

#include <algorithm>

namespace containerize::gpu {

namespace {

/// Describes all devices; "no GPU" if there are none.
std::string devices_of(const Host& host) {
    std::string text;
    for (const auto* vendor : vendors)
        if (const auto some = host.describe(*vendor); !some.empty())
            text += (text.empty() ? "" : "; ") + some;
    return text.empty() ? "no GPU" : text;
}

} // namespace

Fit fit_by_targets(const AcceleratedPackage& package, const Host& host) {
    for (const auto* device : host.of(*package.built_for)) {
        if (device->target.empty() || package.architectures.empty()) continue;
        if (std::ranges::find(package.architectures, device->target) != package.architectures.end()) continue;
        return {.fits = false,
                .reason = "It has code for " + joined(package.architectures, ", ") + ", and this node's " +
                          device->name + " is a " + device->target + "."};
    }
    return {.fits = true,
            .reason = "It was built for " + package.purpose() + ", which supports this node's GPUs."};
}

Fit compare(const AcceleratedPackage& package, const Host& host) {
    if (package.built_for == nullptr) {
        if (host.devices.empty()) return {.fits = true, .reason = "It needs no GPU, and this node has none."};
        return {.fits = false,
                .reason = "It has no GPU support, and this node has " + devices_of(host) + "."};
    }
    const auto& vendor = *package.built_for;
    if (host.of(vendor).empty())
        return {.fits = false,
                .reason = "It was built for " + package.purpose() + ", and this node has " +
                          devices_of(host) + "."};
    if (host.driver(vendor).empty())
        return {.fits = false,
                .reason = "This node has " + devices_of(host) + ", but their kernel driver is not loaded."};
    return vendor.fit(package, host);
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
            continue;
        }
        const auto wanted =
            "the environment is for " + std::string(target->vendor.platform) + " " + target->toolkit + ".";
        if (package.built_for == nullptr)
            warnings.push_back(start + "has no GPU support, but " + wanted);
        else if (package.built_for != &target->vendor)
            warnings.push_back(start + "was built for " + package.purpose() + ", but " + wanted);
        else if (!target->toolkit.empty() && major_version(package.toolkit) > major_version(target->toolkit))
            warnings.push_back(start + "was built for " + package.purpose() + ", which is newer than " +
                               std::string(target->vendor.platform_name) + " " + target->toolkit +
                               " of the target nodes.");
    }
    return warnings;
}

} // namespace containerize::gpu
