#include "../good.h"
#include "../temporary.h"
#include "util/toml_file.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize {
namespace {

std::string refused(const std::string& text) {
    const auto toml = TomlFile::parse(text, "x.toml", 10);
    return toml ? "taken" : to_string(toml.error());
}

TEST(TomlFile, MistakesHaveTheirLine) {
    EXPECT_EQ(refused("a = 1\nb = \n").substr(0, 26), "x.toml:12: invalid TOML: E");
    EXPECT_EQ(refused("a = 1\na = 2\n").substr(0, 26), "x.toml:12: invalid TOML: E");
    EXPECT_EQ(refused("a = \"\xff\"\n").substr(0, 26), "x.toml:11: invalid TOML: E");
    EXPECT_EQ(refused("a = [2.\xC5\x91]\n").substr(0, 26), "x.toml:11: invalid TOML: E"); // see util/toml.h
    EXPECT_EQ(refused("a = 1\n"), "taken");
}

TEST(TomlFile, WrongTypesHaveTheirLine) {
    const auto toml = test::good(
        TomlFile::parse("a = 1\nb = \"x\"\nc = [\"x\", 1]\nd = [{}]\ne = true\n[t]\nx = 1\n", "x.toml", 0));
    const auto& root = toml.root();
    EXPECT_EQ(test::good(toml.text(root, "b")), "x");
    EXPECT_EQ(test::good(toml.text(root, "none")), "");
    EXPECT_EQ(test::good(toml.tables(root, "d")).size(), 1U);
    EXPECT_NE(test::good(toml.table(root, "t")), nullptr);
    EXPECT_EQ(test::good(toml.table(root, "none")), nullptr);
    EXPECT_EQ(to_string(test::error_of(toml.text(root, "a"))), "x.toml:1: `a` must be a string");
    EXPECT_EQ(to_string(test::error_of(toml.texts(root, "c"))), "x.toml:3: `c` must be a list of strings");
    EXPECT_EQ(to_string(test::error_of(toml.texts(root, "b"))), "x.toml:2: `b` must be a list of strings");
    EXPECT_EQ(to_string(test::error_of(toml.tables(root, "c"))), "x.toml:3: `c` must be a list of tables");
    EXPECT_EQ(to_string(test::error_of(toml.table(root, "a"))), "x.toml:1: `a` must be a table");
}

TEST(TomlFile, WhatIsTooLargeIsRefused) {
    std::string deep = "a";
    for (int i = 0; i < 300; ++i)
        deep += ".a";
    EXPECT_EQ(refused("[" + deep + "]\n"), "x.toml: this file is too large: the limit is 200 dots in a key");
    EXPECT_NE(refused("a = " + std::string(100, '[') + std::string(100, ']')), "taken");
    // The deepest that is taken needs little stack.
    deep.resize(399);
    std::string deepest;
    for (int i = 0; i < 30; ++i)
        deepest += "{" + deep + " = ";
    EXPECT_EQ(refused("[" + deep + "]\n" + deep + " = " + deepest + "1" + std::string(30, '}') + "\n"),
              "taken");
    EXPECT_EQ(refused("a = [" + std::string(1'000'000, ',')),
              "x.toml: this file is too large: the limit is 1,000,000 values");
    const test::TemporaryDirectory directory;
    const auto file = directory.write("x.toml", "\xEF\xBB\xBF"
                                                "a = 1\r\n");
    EXPECT_TRUE(TomlFile::read(file));
    EXPECT_EQ(test::error_of(TomlFile::read(directory / "none")).fault, Fault::input);
}

} // namespace
} // namespace containerize
