#include "good.h"
#include "manifest/bind.h"

#include <gtest/gtest.h>

namespace containerize::manifest {
namespace {

TEST(Bind, IsReadInAllItsForms) {
    const std::pair<const char*, Bind> cases[] = {
        {"/data", {"/data", "/data"}},           {"/data/", {"/data/", "/data"}},
        {"/data:/mnt", {"/data", "/mnt"}},       {"/data:/mnt/:ro", {"/data", "/mnt", true}},
        {"/data::ro", {"/data", "/data", true}}, {"/data:/mnt:ro,required", {"/data", "/mnt", true, true}},
        {"/data:/mnt:rw", {"/data", "/mnt"}},
    };
    for (const auto& [text, expected] : cases) {
        const auto bind = parse_bind(text);
        ASSERT_TRUE(bind) << text << to_string(bind.error());
        EXPECT_EQ(*bind, expected) << text;
        EXPECT_EQ(*parse_bind(to_text(*bind)), expected) << text;
    }
}

TEST(Bind, WhatCannotBeOneIsRefused) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "the source must be an absolute path"},
        {"data", "the source must be an absolute path"},
        {"/data:mnt", "the target must be an absolute path"},
        {"/data:/a/../b", "the target must be an absolute path"},
        {"/data:/", "the target must not be the root directory"},
        {"/data://", "the target must not be the root directory"},
        {"/a:/b:ro:x", "it has more than three parts"},
        {"/a:/b:frob", "unknown option 'frob'"},
    };
    for (const auto& [text, why] : cases) {
        const auto bind = parse_bind(text);
        ASSERT_FALSE(bind) << text;
        EXPECT_TRUE(to_string(bind.error()).contains(why)) << to_string(bind.error());
    }
}

TEST(Bind, ListsKeepTheOptionsOfEach) {
    const auto binds = test::good(parse_binds("/a,/b:/c:ro,required,/d:/e:ro,"));
    const std::vector<Bind> expected = {{"/a", "/a"}, {"/b", "/c", true, true}, {"/d", "/e", true}};
    EXPECT_EQ(binds, expected);
    EXPECT_FALSE(parse_binds("/a,b"));
}

} // namespace
} // namespace containerize::manifest
