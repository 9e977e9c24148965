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

TEST(Version, WhatIsNoVersionIsOlder) {
    for (const char* text : {"", "1", "99.0", "99.0.0.0", "99.0.x", "99.0.-1", "99.0.99999999999"}) {
        EXPECT_FALSE(is_newer(text, "0.0.0")) << text;
        EXPECT_TRUE(is_newer("0.0.0", text)) << text;
    }
}

TEST(Version, ThisOneIsAVersion) {
    EXPECT_TRUE(is_newer(this_version, ""));
}

} // namespace containerize
