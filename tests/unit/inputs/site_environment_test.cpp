#include "inputs/site_environment.h"

#include <gtest/gtest.h>

namespace containerize::inputs {

namespace {

using launch::EnvironmentChange;
using Kind = EnvironmentChange::Kind;

std::string text(const std::vector<EnvironmentChange>& changes) {
    std::string all;
    for (const auto& one : changes)
        all += std::to_string(static_cast<int>(one.kind)) + one.name + "=" + one.value + " ";
    return all;
}

TEST(SiteEnvironment, DefaultsLeaveWhatIsSet) {
    SiteSettings site;
    site.environment = {{Kind::set, "A", "site"}, {Kind::set, "B", "site"}};
    std::vector<EnvironmentChange> changes = {{Kind::set, "A", "own"}, {Kind::prepend, "B", "own"}};
    add_site_environment(site, changes);
    EXPECT_EQ(text(changes), "0B=site 0A=own 2B=own ");
    add_site_environment(site, changes);
    EXPECT_EQ(text(changes), "0B=site 0A=own 2B=own ");
}

TEST(SiteEnvironment, ForcedOnesReplace) {
    SiteSettings site;
    site.forced_environment = {{Kind::set, "A", "site"}};
    std::vector<EnvironmentChange> changes = {{Kind::set, "A", "own"}, {Kind::append, "A", "x"}};
    add_site_environment(site, changes);
    add_site_environment(site, changes);
    EXPECT_EQ(text(changes), "0A=site ");
}

} // namespace

} // namespace containerize::inputs
