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
    EXPECT_TRUE(read_distributions(site / "missing").empty());
}

TEST(Distributions, SayWhereTheyCameFrom) {
    const TemporaryDirectory site;
    const auto add = [&](const std::string& name, const std::string& direct_url) {
        site.write(name + "-1.dist-info/METADATA", "Name: " + name + "\nVersion: 1\n");
        if (!direct_url.empty()) site.write(name + "-1.dist-info/direct_url.json", direct_url);
    };
    add("a-index", "");
    add("b-git", R"({"url": "https://h/r", "subdirectory": "py", "vcs_info": {"vcs": "git",
        "requested_revision": "v1", "commit_id": "c0ffee"}})");
    add("c-archive", R"({"url": "https://h/w.zip", "archive_info": {"hashes": {"sha256": "bb"}}})");
    add("d-directory", R"({"url": "file:///p", "dir_info": {}})");
    add("e-editable", R"({"url": "file:///e", "dir_info": {"editable": true}})");
    add("f-broken", "[");
    site.write("project/linked.egg-info/PKG-INFO", "Name: Linked\nVersion: 2\n");
    site.write("linked.egg-link", (site / "project").string() + "\n.");
    const auto found = read_distributions(site.path());
    ASSERT_EQ(found.size(), 7U);
    EXPECT_FALSE(found[0].origin);
    EXPECT_EQ(found[1].origin->url + found[1].origin->vcs + found[1].origin->commit +
                  found[1].origin->subdirectory,
              "https://h/rgitc0ffeepy");
    EXPECT_EQ(found[2].origin->sha256, "bb");
    EXPECT_FALSE(found[2].origin->directory);
    EXPECT_TRUE(found[3].origin->directory && !found[3].origin->editable);
    EXPECT_TRUE(found[4].origin->directory && found[4].origin->editable);
    EXPECT_FALSE(found[5].origin);
    EXPECT_EQ(found[6].name + found[6].version, "Linked2");
    EXPECT_EQ(found[6].origin->url, "file://" + (site / "project").string());
    EXPECT_TRUE(found[6].origin->editable);
}

TEST(Distributions, VersionsAreComparedAsPipDoesIt) {
    for (const auto& [one, other] : {std::pair("1.0", "v1.0.0"),
                                     {"2.0rc1", "2.0-RC.1"},
                                     {"2.0c1", "2rc1"},
                                     {"1.0alpha", "1.0a0"},
                                     {"1.0-1", "1.post1"},
                                     {"1.0.r4", "1.0post4"},
                                     {"1.0dev", "1.0.dev0"},
                                     {"2024.02.01", "2024.2.1"},
                                     {"1+2024.01_cu-0", "1.0+2024.1.cu.0"},
                                     {"1+0012x", "1+0012x"},
                                     {"0!1.0", "1"},
                                     {"0.0", "0"},
                                     {"1.0b2.post3.dev4", "1.0-beta-2-post-3-dev-4"},
                                     {"2.1.0+cu118", "2.1+CU118"},
                                     {"1.0+ubuntu-1", "1.0+ubuntu.1"}})
        EXPECT_EQ(normalised_version(one), normalised_version(other));
    for (const auto& [one, other] : {std::pair("1.0", "1.0.1"),
                                     {"1.0", "1.0rc1"},
                                     {"1.0", "1.0.post1"},
                                     {"1.0", "1.0.dev0"},
                                     {"1.0", "1!1.0"},
                                     {"10", "1"},
                                     {"2.1", "2.1+cu118"},
                                     {"2.1+cpu", "2.1+cu118"}})
        EXPECT_NE(normalised_version(one), normalised_version(other));
}

TEST(Distributions, NamesAreComparedAsPipDoesIt) {
    EXPECT_EQ(normalised_name("Charset_.Normalizer"), "charset-normalizer");
    EXPECT_EQ(normalised_name("six"), "six");
}

} // namespace

} // namespace containerize::pip
