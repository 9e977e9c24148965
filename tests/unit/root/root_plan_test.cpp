#include "good.h"
#include "root/root_plan.h"
#include "temporary.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::root {
namespace {

using Texts = std::vector<std::string>;
using test::TemporaryDirectory;

/// "SOURCE > TARGET", followed by what is unusual about it.
std::string described(const RootMount& mount) {
    return (mount.in_memory() ? "memory" : mount.source) + " > " + mount.target +
           (mount.directory ? "" : ", a file") + (mount.read_only ? ", read-only" : "") +
           (mount.optional ? ", optional" : "") + (mount.takes_name ? ", takes the name" : "");
}

Texts described(const RootPlan& plan) {
    Texts texts;
    for (const auto& mount : plan.mounts())
        texts.push_back(described(mount));
    return texts;
}

class RootPlanTest : public testing::Test {
protected:
    RootPlanTest() {
        directory_.write("own/etc/passwd", "");
        directory_.write("here/file", "");
        fs::create_directory(at("there"));
        request_.base.reference = "some image";
        request_.base.file = "/some.sqfs";
    }
    [[nodiscard]] std::string at(const std::string& name) const { return (directory_ / name).string(); }

    Texts mounts() {
        RootPlan plan(request_, at("own"));
        const auto made = plan.make();
        EXPECT_TRUE(made) << to_string(made.error());
        notes_ = plan.notes();
        return described(plan);
    }
    /// The mounts for the request, without those that there are without its paths.
    Texts mounts_of_paths() {
        auto all = mounts();
        auto bare = request_;
        bare.needed.clear();
        bare.binds.clear();
        bare.offered.clear();
        RootPlan plan(bare, at("own"));
        EXPECT_TRUE(plan.make());
        const auto usual = static_cast<std::ptrdiff_t>(plan.mounts().size());
        EXPECT_TRUE(std::equal(all.begin(), all.begin() + usual, described(plan).begin()));
        return {all.begin() + usual, all.end()};
    }

    TemporaryDirectory directory_;
    RootRequest request_;
    Texts notes_;
};

TEST_F(RootPlanTest, AnImageIsSeenWithTheHostsOtherDirectories) {
    const auto all = mounts();
    const auto has = [&](const std::string& text) { return std::ranges::count(all, text) == 1; };
    EXPECT_EQ(all.front(), at("own") + " > /.containerize, read-only");
    for (const std::string path : {"/proc", "/sys", "/dev", "/tmp", "/home", "/var/tmp"})
        EXPECT_TRUE(has(path + " > " + path)) << path;
    for (const auto& mount : all)
        for (const std::string target : {"/usr", "/etc", "/var", "/opt", "/root", "/bin"})
            EXPECT_FALSE(mount.ends_with(" > " + target)) << mount;
    EXPECT_TRUE(has("/etc/hosts > /etc/hosts, a file, optional, takes the name"));
    EXPECT_TRUE(has(at("own/etc/passwd") + " > /etc/passwd, a file, optional, takes the name"));
    EXPECT_TRUE(std::ranges::none_of(all, [](const auto& one) { return one.contains(" > /etc/group"); }));
}

TEST_F(RootPlanTest, TheHomeIsMountedIfNoDirectoryShowsIt) {
    const auto has_home = [&](const std::string& home) {
        request_.home = home;
        return std::ranges::any_of(mounts(),
                                   [&](const auto& one) { return one.starts_with(home + " > " + home); });
    };
    EXPECT_TRUE(has_home("/usr/share"));
    EXPECT_FALSE(has_home(at("here")));
    EXPECT_FALSE(has_home("/usr/no-such-directory"));
    EXPECT_FALSE(has_home("/usr/bin/env"));
    EXPECT_FALSE(has_home(""));
}

TEST_F(RootPlanTest, AnIsolatedImageIsSeenWithNothingElse) {
    request_.base.isolate = true;
    request_.home = "/home/me";
    Texts expected = {at("own") + " > /.containerize, read-only", "/proc > /proc", "/sys > /sys"};
    for (const std::string path : {"/dev", "/tmp", "/var/tmp", "/run", "/home/me"})
        expected.push_back("memory > " + path + ", takes the name");
    for (const std::string path : {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "fuse"})
        if (fs::exists("/dev/" + path))
            expected.push_back("/dev/" + path + " > /dev/" + path + (path == "pts" ? "" : ", a file"));
    expected.emplace_back("memory > /dev/shm, takes the name");
    auto all = mounts();
    ASSERT_GE(all.size(), expected.size());
    EXPECT_EQ(Texts(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(expected.size())), expected);
    for (std::size_t i = expected.size(); i < all.size(); ++i)
        EXPECT_TRUE(all[i].contains(" > /etc/")) << all[i];
    request_.home = "/";
    for (const auto& mount : mounts())
        EXPECT_FALSE(mount.contains(" > /,")) << mount;
}

TEST_F(RootPlanTest, WhatIsNeededIsMountedIfItIsNotSeen) {
    request_.needed = {at("here"), at("here/file"), "/no/such/path", "/usr/share"};
    EXPECT_EQ(mounts_of_paths(), Texts{"/usr/share > /usr/share"});
    request_.base.isolate = true;
    EXPECT_EQ(mounts_of_paths(), (Texts{at("here") + " > " + at("here"), "/usr/share > /usr/share"}));
    request_.needed = {at("here/file")};
    EXPECT_EQ(mounts_of_paths(), Texts{at("here/file") + " > " + at("here/file") + ", a file"});
    request_.base = {};
    EXPECT_EQ(mounts(), Texts());
}

TEST_F(RootPlanTest, BindsAreMountedInTheirOrder) {
    const auto here = at("here"), there = at("there");
    request_.binds = {{.source = here, .target = "/a"},
                      {.source = at("here/file"), .target = "/a/file", .read_only = true},
                      {.source = at("missing"), .target = "/b"}};
    request_.offered = {{.source = there, .target = "/a"}};
    const Texts expected = {here + " > /a", at("here/file") + " > /a/file, a file, read-only",
                            there + " > /a, optional"};
    for (const manifest::Base& base : {request_.base, manifest::Base()}) {
        request_.base = base;
        EXPECT_EQ(mounts_of_paths(), expected);
        EXPECT_EQ(notes_, Texts{"not bound, because it does not exist: " + at("missing")});
    }
    request_.binds.back().required = true;
    RootPlan plan(request_, at("own"));
    const auto made = test::error_of(plan.make());
    EXPECT_EQ(made.what, "the source of a required bind is missing");
    EXPECT_EQ(made.where, at("missing"));
}

TEST_F(RootPlanTest, ABindToItselfIsNeededOnlyWhereItIsNotSeen) {
    const auto here = at("here"), there = at("there");
    const manifest::Bind to_itself{.source = here, .target = here};
    const manifest::Bind read_only{.source = here, .target = here, .read_only = true};
    const manifest::Bind parent{.source = at(""), .target = directory_.path().string(), .read_only = true};
    const manifest::Bind other{.source = there, .target = here};
    const auto own = here + " > " + here, over_it = there + " > " + here;
    const struct {
        std::vector<manifest::Bind> binds;
        Texts expected;
    } cases[] = {
        {{to_itself}, {}},
        {{read_only}, {own + ", read-only"}},
        {{other, to_itself}, {over_it, own}},
        {{read_only, to_itself}, {own + ", read-only", own}},
        {{parent, to_itself}, {at("") + " > " + directory_.path().string() + ", read-only", own}},
        {{other, to_itself, to_itself}, {over_it, own}},
    };
    for (const manifest::Base& base : {request_.base, manifest::Base()}) {
        request_.base = base;
        for (const auto& [binds, expected] : cases) {
            request_.binds = binds;
            EXPECT_EQ(mounts_of_paths(), expected);
        }
    }
}

} // namespace
} // namespace containerize::root
