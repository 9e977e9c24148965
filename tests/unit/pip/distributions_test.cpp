#include "../temporary.h"
#include "pip/distributions.h"

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using test::TemporaryDirectory;

TEST(Distributions, OfEveryForm) {
    const TemporaryDirectory site;
    site.write("six-1.16.0.dist-info/METADATA",
               "Metadata-Version: 2.1\nName: six\nVersion: 1.16.0\n\nName: not this\n");
    site.write("six-1.16.0.dist-info/REQUESTED", "");
    site.write("Old.egg-info/PKG-INFO", "Name:   Old_Thing\r\nVersion: 2\r\n\r\n");
    site.write("flat-3.egg-info", "Name: flat\nVersion: 3\n");
    site.write("broken.dist-info/METADATA", "Name: broken\n\nVersion: 1\n");
    site.write("empty.dist-info/INSTALLER", "pip");
    site.write("six.py", "");
    const auto found = read_distributions(site.path());
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].name, "flat");
    EXPECT_EQ(found[0].metadata, "flat-3.egg-info");
    EXPECT_EQ(found[1].name, "Old_Thing");
    EXPECT_EQ(found[1].version, "2");
    EXPECT_EQ(found[2].metadata, "six-1.16.0.dist-info/METADATA");
    EXPECT_TRUE(found[2].requested);
    EXPECT_FALSE(found[0].requested);
    EXPECT_TRUE(read_distributions(site.path() / "missing").empty());
}

TEST(Distributions, NamesAreComparedAsPipDoesIt) {
    EXPECT_EQ(normalised_name("Charset_.Normalizer"), "charset-normalizer");
    EXPECT_EQ(normalised_name("six"), "six");
}

} // namespace

} // namespace containerize::pip
