#include "gpu/injection.h"

#include "gpu/injector.h"

#include <array>
#include <utility>

namespace containerize::gpu {

namespace {

constexpr std::array<std::pair<std::string_view, Policy>, 5> policies = {{{"auto", Policy::automatic},
                                                                          {"nvidia", Policy::nvidia},
                                                                          {"amd", Policy::amd},
                                                                          {"intel", Policy::intel},
                                                                          {"none", Policy::none}}};

bool wants(Policy policy, Vendor vendor) {
    switch (policy) {
    case Policy::automatic:
        return true;
    case Policy::nvidia:
        return vendor == Vendor::nvidia;
    case Policy::amd:
        return vendor == Vendor::amd;
    case Policy::intel:
        return vendor == Vendor::intel;
    case Policy::none:
        return false;
    }
    return false;
}

void add(Injector& injector, const Host& host, Vendor vendor) {
    injector.note(std::string(name_of(vendor)) + ": " + host.describe(vendor) + ".");
    if (auto problem = obstacle(injector.host(), host, vendor); !problem.empty())
        injector.note(std::move(problem));
    if (host.driver(vendor).empty()) return;
    switch (vendor) {
    case Vendor::nvidia:
        return add_nvidia(injector, host);
    case Vendor::amd:
        return add_amd(injector, host);
    case Vendor::intel:
        return add_intel(injector, host);
    }
}

} // namespace

Result<Policy> parse_policy(std::string_view text) {
    for (const auto& [name, policy] : policies)
        if (name == text) return policy;
    return fail_input("not a policy for GPUs: '" + std::string(text) + "'", {}, {},
                      "Give auto, nvidia, amd, intel or none.");
}

Injection find(const Request& request) {
    const auto host = discover(DirectoryView(request.host_root));
    std::vector<Vendor> vendors;
    for (const auto vendor : all_vendors)
        if (wants(request.policy, vendor) && !host.of(vendor).empty()) vendors.push_back(vendor);
    // Most nodes end here, before anything of the image is read.
    if (vendors.empty()) {
        Injection nothing;
        if (request.policy != Policy::none)
            nothing.notes.emplace_back(request.policy == Policy::automatic
                                           ? "This node has no GPU."
                                           : "This node has no GPU of the vendor that was asked for.");
        return nothing;
    }
    Injector injector(request);
    for (const auto vendor : vendors)
        add(injector, host, vendor);
    return injector.finish();
}

} // namespace containerize::gpu
