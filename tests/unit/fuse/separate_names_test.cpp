#include "fuse/separate_names.h"

#include <gtest/gtest.h>

namespace containerize::fuse {
namespace {

constexpr image::Reference directory = 1;

TEST(SeparateNames, GivesEachNameANodeOfItsOwn) {
    SeparateNames names;
    const auto first = names.node(directory, "first", 7);
    const auto second = names.node(directory, "second", 7);
    EXPECT_NE(first, second);
    EXPECT_EQ(names.node(directory, "first", 7), first);
    EXPECT_EQ(names.file(first), 7U);
    EXPECT_EQ(names.file(second), 7U);
}

TEST(SeparateNames, HasNoFileForANodeThatWasNeverGivenOut) {
    SeparateNames names;
    const auto node = names.node(directory, "only", 7);
    EXPECT_EQ(names.file(node + 1), std::nullopt);
    EXPECT_EQ(names.file(~0ULL), std::nullopt);
}

} // namespace
} // namespace containerize::fuse
