#include "spec/pixi_platform.h"

#include "conda/version.h"
#include "core/text.h"

#include <algorithm>
#include <optional>

namespace containerize::spec {

namespace {

/// The N of "x86_64_vN", where each level includes the lower ones. Nothing for other names.
std::optional<int> level_of(std::string_view architecture) {
    constexpr std::string_view levels = "x86_64_v";
    if (architecture == "x86_64") return 1;
    if (!architecture.starts_with(levels)) return std::nullopt;
    return to_number<int>(architecture.substr(levels.size()));
}

} // namespace

bool satisfies(const std::vector<conda::VirtualPackage>& machine, std::string_view wanted) {
    const auto end = std::min(wanted.find_first_of(" =<>!~"), wanted.size());
    const auto found =
        std::ranges::find(machine, std::string(wanted.substr(0, end)), &conda::VirtualPackage::name);
    if (found == machine.end()) return false;
    auto rest = wanted.substr(end);
    while (rest.starts_with(' '))
        rest.remove_prefix(1);
    if (rest.empty()) return true;
    const auto own = conda::Version::parse(found->version);
    if (!own) return false;
    if (!rest.starts_with('=') || rest.starts_with("==")) {
        const auto asked = conda::VersionSpec::parse(rest);
        return asked && asked->matches(*own);
    }
    rest.remove_prefix(1);
    const auto build_at = std::min(rest.find('='), rest.size());
    const auto least = conda::Version::parse(rest.substr(0, build_at));
    if (!least || (*own <=> *least) < 0) return false;
    if (build_at == rest.size()) return true;
    const auto build = rest.substr(build_at + 1);
    const auto asked_level = level_of(build);
    const auto own_level = level_of(found->build);
    return asked_level && own_level ? *own_level >= *asked_level : found->build == build;
}

} // namespace containerize::spec
