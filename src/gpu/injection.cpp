#include "gpu/injection.h"

#include "core/text.h"
#include "gpu/injector.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace containerize::gpu {

namespace {

void add(Injector& injector, const Host& host, const Vendor& vendor) {
    injector.note(std::string(vendor.name) + ": " + host.describe(vendor) + ".");
    if (auto problem = obstacle(injector.host(), host, vendor); !problem.empty())
        injector.note(std::move(problem));
    if (!host.driver(vendor).empty()) vendor.inject(injector, host);
}

} // namespace

std::vector<std::string> policy_names() {
    std::vector<std::string> names = {"auto"};
    for (const auto* vendor : vendors)
        names.emplace_back(vendor->option);
    names.emplace_back("none");
    return names;
}

Result<Policy> parse_policy(std::string_view text) {
    if (text == "auto") return vendors;
    if (text == "none") return Policy();
    if (const auto* const found = std::ranges::find(vendors, text, &Vendor::option); found != vendors.end())
        return Policy(found, 1);
    return fail_input("unknown GPU policy: '" + std::string(text) + "'", {}, {},
                      "Give " + listed(policy_names()) + ".");
}

Injection find(const Request& request) {
    const auto host = discover(DirectoryView(request.host_root));
    std::vector<const Vendor*> found;
    std::ranges::copy_if(request.policy, std::back_inserter(found),
                         [&](const Vendor* vendor) { return !host.of(*vendor).empty(); });
    // The usual case: return before anything in the image is read.
    std::vector<std::string> notes;
    if (found.empty() && !request.policy.empty())
        notes.emplace_back(request.policy.size() == vendors.size()
                               ? "This node has no GPU."
                               : "This node has no GPU of the requested vendor.");
    if (found.empty() && request.libraries.empty())
        return {.binds = {}, .links = {}, .environment = {}, .warnings = {}, .notes = std::move(notes)};
    Injector injector(request);
    for (auto& text : notes)
        injector.note(std::move(text));
    injector.add_with_needed(request.libraries);
    for (const auto* vendor : found)
        add(injector, host, *vendor);
    return injector.finish();
}

} // namespace containerize::gpu
