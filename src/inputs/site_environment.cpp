#include "inputs/site_environment.h"

#include <algorithm>

namespace containerize::inputs {

void add_site_environment(const SiteSettings& site, std::vector<launch::EnvironmentChange>& changes) {
    using Kind = launch::EnvironmentChange::Kind;
    // The site's changes come first, so that later ones can extend them.
    std::vector<launch::EnvironmentChange> all;
    for (const auto& change : site.environment) {
        const bool decided = std::ranges::any_of(changes, [&](const auto& one) {
            return one.name == change.name && (one.kind == Kind::set || one.kind == Kind::unset);
        });
        if (!decided) all.push_back(change);
    }
    all.insert(all.end(), changes.begin(), changes.end());
    for (const auto& change : site.forced_environment) {
        std::erase_if(all, [&](const auto& one) { return one.name == change.name; });
        all.push_back(change);
    }
    changes = std::move(all);
}

} // namespace containerize::inputs
