#include "good.h"
#include "manifest/launch_settings.h"

#include <gtest/gtest.h>

namespace containerize::manifest {
namespace {

using When = PrefetchSetting::When;

TEST(PrefetchSetting, IsWhenAndPerhapsHow) {
    EXPECT_EQ(parse_prefetch("auto")->when, When::automatic);
    EXPECT_EQ(parse_prefetch("on")->when, When::always);
    EXPECT_EQ(parse_prefetch("off")->when, When::never);
    const auto setting = test::good(parse_prefetch("on:1M:32"));
    EXPECT_EQ(setting.when, When::always);
    EXPECT_EQ(setting.size, 1U << 20U);
    EXPECT_EQ(setting.depth, 32U);
    EXPECT_EQ(parse_prefetch("auto:64K:1")->size, 64U << 10U);
    EXPECT_EQ(parse_prefetch("auto:65537:1")->size, 65537U);
    for (const auto* bad :
         {"", "yes", "on:", "on:4M", "on:4M:", "on:4M:0", "on:4M:65", "on:4M:8:1", "on:63K:8", "on:65M:8",
          "on:-4M:8", "on:4G:8", "on:4m:8", "ON", " on", "on:99999999999M:8"}) {
        const auto read = parse_prefetch(bad);
        ASSERT_FALSE(read) << bad;
        EXPECT_EQ(read.error().fault, Fault::input);
    }
}

TEST(StagePlaces, AreThree) {
    EXPECT_EQ(parse_stage_place("").value(), StagePlace::held);
    EXPECT_EQ(parse_stage_place("off").value(), StagePlace::off);
    EXPECT_EQ(parse_stage_place("local").value(), StagePlace::local);
    EXPECT_EQ(parse_stage_place("ram").value(), StagePlace::ram);
    EXPECT_FALSE(parse_stage_place("disk"));
}

} // namespace
} // namespace containerize::manifest
