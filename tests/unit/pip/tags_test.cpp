#include "../good.h"
#include "pip/tags.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

InterpreterFacts python311() {
    return {.implementation = "cpython",
            .minor = 11,
            .machine = "x86_64",
            .libc = "glibc",
            .libc_version = {2, 36}};
}

bool contains(const std::vector<std::string>& tags, const std::string& tag) {
    return std::ranges::find(tags, tag) != tags.end();
}

TEST(Tags, AreThoseOfPip) {
    const auto tags = tags_of(python311());
    EXPECT_EQ(tags.size(), 914U); // as `pip debug --verbose` counts them there
    EXPECT_EQ(std::set(tags.begin(), tags.end()).size(), tags.size());
    for (const auto* tag :
         {"cp311-cp311-manylinux_2_36_x86_64", "cp311-abi3-manylinux2014_x86_64", "cp32-abi3-linux_x86_64",
          "cp311-none-any", "py3-none-manylinux1_x86_64", "py30-none-any", "py311-none-any"})
        EXPECT_TRUE(contains(tags, tag)) << tag;
    for (const auto* tag : {"cp311-cp311-manylinux_2_37_x86_64", "cp310-cp310-manylinux_2_17_x86_64",
                            "py312-none-any", "cp311-cp311-musllinux_1_2_x86_64", "py2-none-any"})
        EXPECT_FALSE(contains(tags, tag)) << tag;
    EXPECT_EQ(tags.front(), "cp311-cp311-manylinux_2_36_x86_64");
    EXPECT_EQ(tags.back(), "py30-none-any");
}

TEST(Tags, DependOnTheMachineAndTheLibrary) {
    auto facts = python311();
    facts.machine = "aarch64";
    EXPECT_TRUE(contains(tags_of(facts), "cp311-cp311-manylinux2014_aarch64"));
    EXPECT_FALSE(contains(tags_of(facts), "cp311-cp311-manylinux2010_aarch64"));
    facts.libc = "musl";
    facts.libc_version = {1, 2};
    EXPECT_TRUE(contains(tags_of(facts), "cp311-cp311-musllinux_1_1_aarch64"));
    EXPECT_FALSE(contains(tags_of(facts), "cp311-cp311-manylinux2014_aarch64"));
}

TEST(Tags, AFreeThreadedPythonHasItsOwnAbi) {
    auto facts = python311();
    facts.minor = 13;
    facts.free_threaded = true;
    const auto tags = tags_of(facts);
    EXPECT_TRUE(contains(tags, "cp313-cp313t-manylinux_2_17_x86_64"));
    for (const auto* tag : {"cp313-cp313-manylinux_2_17_x86_64", "cp311-abi3-manylinux_2_17_x86_64"})
        EXPECT_FALSE(contains(tags, tag)) << tag;
    facts.free_threaded = false;
    facts.debug = true;
    EXPECT_EQ(tags_of(facts).front(), "cp313-cp313d-manylinux_2_36_x86_64");
    EXPECT_TRUE(contains(tags_of(facts), "cp313-cp313-linux_x86_64"));
}

TEST(Tags, RankWheels) {
    const TagOrder order(tags_of(python311()));
    // The order in which uv takes them, the best first.
    const std::vector<std::string> wheels = {
        "w-1-cp311-cp311-manylinux_2_28_x86_64.whl",
        "w-1-2b-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "w-1-2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "w-1-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "w-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "w-1-cp311-cp311-linux_x86_64.whl",
        "w-1-cp311-abi3-manylinux_2_17_x86_64.whl",
        "w-1-cp311-none-linux_x86_64.whl",
        "w-1-cp37-abi3-manylinux_2_17_x86_64.whl",
        "w-1-py311-none-linux_x86_64.whl",
        "w-1-py3-none-manylinux_2_17_x86_64.whl",
        "w-1-py310-none-linux_x86_64.whl",
        "w-1-cp311-none-any.whl",
        "w-1-py311-none-any.whl",
        "w-1-py2.py3-none-any.whl",
        "w-1-py39-none-any.whl",
    };
    for (std::size_t i = 0; i + 1 < wheels.size(); ++i) {
        ASSERT_TRUE(order.rank(wheels[i])) << wheels[i];
        EXPECT_GT(order.rank(wheels[i]), order.rank(wheels[i + 1])) << wheels[i];
    }
    for (const auto* other : {"w-1-cp312-cp312-manylinux_2_17_x86_64.whl", "w-1-py2-none-any.whl",
                              "w-1.tar.gz", "w-1-none-any.whl", ".whl", "", "a-b-c-d-e-f-g.whl"})
        EXPECT_FALSE(order.rank(other)) << other;
}

TEST(Tags, AnInterpreterTellsItsFacts) {
    const auto facts = test::good(ask_interpreter({.argv = {"python3"}}));
    EXPECT_EQ(facts.implementation, "cpython");
    EXPECT_GE(facts.minor, 8);
    EXPECT_FALSE(facts.libc.empty());
    EXPECT_FALSE(ask_interpreter({.argv = {"false"}}));
}

} // namespace

} // namespace containerize::pip
