#include "core/version.h"

#include <gtest/gtest.h>

namespace containerize {

TEST(Version, NumbersAreComparedAsNumbers) {
    EXPECT_TRUE(is_newer("0.10.0", "0.9.1"));
    EXPECT_TRUE(is_newer("1.0.0", "0.99.99"));
    EXPECT_TRUE(is_newer("1.0.10", "1.0.9"));
    EXPECT_FALSE(is_newer("1.0.0", "1.0.0"));
    EXPECT_FALSE(is_newer("0.9.1", "0.10.0"));
}

TEST(Version, WhatIsNoVersionIsNewer) {
    for (const char* text : {"1", "9.0", "0.1.0.0", "0.3.0-rc1", "0.1.x", "0.1.-1", "0.1.99999999999"}) {
        EXPECT_TRUE(is_newer(text, "99.0.0")) << text;
        EXPECT_FALSE(is_newer("99.0.0", text)) << text;
        EXPECT_FALSE(is_newer(text, "x")) << text;
    }
}

TEST(Version, NoTextIsOlder) {
    EXPECT_FALSE(is_newer("", "0.0.0"));
    EXPECT_TRUE(is_newer("0.0.0", ""));
}

TEST(Version, ThisOneIsAVersion) {
    EXPECT_TRUE(is_newer(this_version, ""));
}

} // namespace containerize
