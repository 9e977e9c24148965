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
    return fail_input("unknown GPU policy: '" + std::string(text) + "'", {}, {},
                      "Give auto, nvidia, amd, intel or none.");
}

Injection find(const Request& request) {
    const auto host = discover(DirectoryView(request.host_root));
    std::vector<Vendor> vendors;
    for (const auto vendor : all_vendors)
        if (wants(request.policy, vendor) && !host.of(vendor).empty()) vendors.push_back(vendor);
    // The usual case: return before anything in the image is read.
    std::vector<std::string> notes;
    if (vendors.empty() && request.policy != Policy::none)
        notes.emplace_back(request.policy == Policy::automatic
                               ? "This node has no GPU."
                               : "This node has no GPU of the requested vendor.");
    if (vendors.empty() && request.libraries.empty())
        return {.binds = {}, .links = {}, .environment = {}, .warnings = {}, .notes = std::move(notes)};
    Injector injector(request);
    for (auto& text : notes)
        injector.note(std::move(text));
    injector.add_with_needed(request.libraries);
    for (const auto vendor : vendors)
        add(injector, host, vendor);
    return injector.finish();
}

} // namespace containerize::gpu
