#include "good.h"
#include "launch/launch_plan.h"

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

TEST(LaunchPlan, SurvivesItsFile) {
    const LaunchPlan plan{.identity = "1:2",
                          .prefix = "/e",
                          .root = {{EnvironmentChange::Kind::unset, "LD_PRELOAD", {}}},
                          .activation = {{EnvironmentChange::Kind::prepend, "PATH", "/e/bin"}},
                          .scripts = {"/e/a.sh", "/e/it's.sh"},
                          .environment = {{EnvironmentChange::Kind::unset, "X", {}},
                                          {EnvironmentChange::Kind::set, "EMPTY", {}}}};
    const auto bytes = to_bytes(plan);
    const auto read = test::good(plan_from_bytes(bytes));
    EXPECT_EQ(read.identity, "1:2");
    EXPECT_EQ(read.prefix, "/e");
    EXPECT_EQ(read.root.size(), 1U);
    EXPECT_EQ(read.activation.size(), 1U);
    EXPECT_EQ(read.scripts, plan.scripts);
    ASSERT_EQ(read.environment.size(), 2U);
    EXPECT_EQ(read.environment[1].name, "EMPTY");
    // A launcher that reads a truncated plan must not use it.
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(plan_from_bytes(std::string_view(bytes).substr(0, size))) << size;
}

} // namespace
} // namespace containerize::launch
