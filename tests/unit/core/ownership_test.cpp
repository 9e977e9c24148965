#include "core/ownership.h"
#include "temporary.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize {
namespace {

namespace fs = std::filesystem;

constexpr uid_t other = 12345;
constexpr gid_t group = 23456;

/// In a directory that only this user can write to.
class OwnershipTest : public testing::Test {
protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
        fs::create_directories(place / "a/b");
        ASSERT_EQ(chmod(place.path().c_str(), 0755), 0);
    }
    [[nodiscard]] std::string at(const std::string& name) const { return (place / name).string(); }
    void make(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
        if (!fs::exists(at(name))) fs::create_directories(at(name));
        ASSERT_EQ(chown(at(name).c_str(), uid, gid), 0);
        ASSERT_EQ(chmod(at(name).c_str(), mode), 0);
    }
    void expect_own(const std::string& name, const OwnershipRules& rules = {}) const {
        const auto found = find_foreign(at(name), rules);
        EXPECT_FALSE(found) << found->path << ": " << found->why;
    }
    void expect_foreign(const std::string& name, const std::string& by, const std::string& why,
                        const OwnershipRules& rules = {}) const {
        const auto found = find_foreign(at(name), rules);
        if (!found) FAIL() << name;
        EXPECT_EQ(found->path, at(by));
        EXPECT_TRUE(found->why.contains(why)) << found->why;
    }
    test::TemporaryDirectory place;
};

TEST_F(OwnershipTest, AllTheWayUp) {
    expect_own("a/b");
    expect_own("a/b/missing/too");
    make("a", other, 0, 0755);
    expect_foreign("a/b", "a", "another user");
    expect_own("a/b", {.owner = other});
    make("a", 0, 0, 0777);
    expect_foreign("a/b", "a", "everybody");
    make("a", 0, 0, 0755);
    make("a/b", 0, 0, 0777);
    expect_foreign("a/b", "a/b", "everybody");
}

TEST_F(OwnershipTest, Sticky) {
    make("a", 0, 0, 01777);
    expect_own("a/b");
    expect_foreign("a/missing", "a", "everybody");
    expect_foreign("a/missing/more", "a", "everybody");
    expect_foreign("a", "a", "everybody");
    expect_foreign("a/b", "a", "everybody", {.must_stay = true, .beside = at("env")});
    make("a/b", other, 0, 0755);
    expect_foreign("a/b", "a/b", "another user");
}

TEST_F(OwnershipTest, GroupsOfOneAndOfMany) {
    make("a", other, other, 0775);
    expect_own("a/b", {.owner = other});
    make("a", other, group, 0775);
    expect_foreign("a/b", "a", "group", {.owner = other});
    // Root has given it to a project, whose members can replace its entries.
    make("a", 0, group, 02770);
    expect_own("a/b");
    expect_foreign("a/b", "a", "group", {.must_stay = true, .beside = at("env")});
    make("a/b", other, group, 02770);
    expect_foreign("a/b", "a/b", "another user");
}

TEST_F(OwnershipTest, AnAccessListIsNoPrivateGroup) {
    make("a", other, other, 0755);
    struct Entry {
        std::uint16_t tag, permissions;
        std::uint32_t id;
    };
    // In the form of linux/posix_acl_xattr.h: owner, another user, group, mask, others.
    struct {
        std::uint32_t version = 2;
        std::array<Entry, 5> entries{{{1, 7, ~0U}, {2, 7, 34567}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}}};
    } list;
    ASSERT_EQ(setxattr(at("a").c_str(), "system.posix_acl_access", &list, sizeof list, 0), 0);
    expect_foreign("a/b", "a", "group", {.owner = other});
}

TEST_F(OwnershipTest, Links) {
    make("a", 0, 0, 01777);
    make("c", 0, 0, 0755);
    fs::create_symlink(at("c"), at("a/absolute"));
    fs::create_symlink("../c", at("a/relative"));
    expect_own("a/absolute/x");
    expect_own("a/relative/x");
    ASSERT_EQ(lchown(at("a/relative").c_str(), other, 0), 0);
    expect_foreign("a/relative/x", "a/relative", "another user");
    make("c", other, 0, 0755);
    expect_foreign("a/absolute/x", "c", "another user");
    fs::create_symlink("loop", at("loop"));
    expect_own("loop/x"); // a link to itself leads nowhere
}

TEST_F(OwnershipTest, BesideWhatIsTrustedAlready) {
    make("a", other, group, 0775);
    make("a/b", 0, 0, 0755);
    // Anybody who can write to a can also replace a/b.
    expect_own("a/place", {.must_stay = true, .beside = at("a/b")});
    expect_foreign("a/place", "a", "another user", {.must_stay = true, .beside = at("ab")});
    make("a/c", 0, 0, 0777);
    expect_foreign("a/c/place", "a/c", "everybody", {.must_stay = true, .beside = at("a/b")});
    // In a sticky directory, this does not hold.
    make("a", 0, 0, 01777);
    expect_foreign("a/place", "a", "everybody", {.must_stay = true, .beside = at("a/b")});
    expect_own("a/b/place", {.must_stay = true, .beside = at("a/b/env")});
}

/// In a user namespace, root's files can appear as nobody's: root is the owner of the root directory.
TEST_F(OwnershipTest, RootByAnotherNumber) {
    OwnershipRules rules;
    rules.look = [this](const char* path, struct stat* info) {
        const int result = lstat(path, info);
        if (info->st_uid == 0 && !std::string_view(path).starts_with(place.path().string()))
            info->st_uid = 65534;
        return result;
    };
    expect_own("a/b", rules);
    make("a", other, 0, 0755);
    expect_foreign("a/b", "a", "another user", rules);
}

/// So can those of other users.
TEST_F(OwnershipTest, RootAndOthersByTheSameNumber) {
    OwnershipRules rules;
    rules.look = [this](const char* path, struct stat* info) {
        const int result = lstat(path, info);
        if (info->st_uid != 0 || !std::string_view(path).starts_with(place.path().string()))
            info->st_uid = 65534;
        return result;
    };
    make("a", 65534, 0, 0755);
    expect_own("a/b", rules);
    make("a", 65534, 0, 01777);
    make("a/b", other, 0, 0755);
    expect_foreign("a/b", "a/b", "another user", rules);
    fs::create_directory_symlink("/usr", at("a/link"));
    expect_own("a/link/bin", rules);
    fs::create_directory_symlink("c", at("a/theirs"));
    ASSERT_EQ(lchown(at("a/theirs").c_str(), other, 0), 0);
    expect_foreign("a/theirs", "a/theirs", "another user", rules);
    make("a/c", 0, 0, 0755);
    fs::create_directory_symlink("c", at("a/ours"));
    expect_own("a/ours/missing", rules);
}

TEST_F(OwnershipTest, APlaceThatOnlyHasTheName) {
    EXPECT_FALSE(has_foreign_owner(at("a/b")));
    EXPECT_FALSE(has_foreign_owner(at("a/missing/more")));
    make("a", other, 0, 0755); // a directory that only root could give away
    EXPECT_FALSE(has_foreign_owner(at("a/b")));
    ASSERT_EQ(chmod(place.path().c_str(), 01777), 0);
    EXPECT_TRUE(has_foreign_owner(at("a")));
    EXPECT_TRUE(has_foreign_owner(at("a/b/c")));
    EXPECT_FALSE(has_foreign_owner(at("missing")));
}

TEST_F(OwnershipTest, PrivateDirectoriesAreOpened) {
    make("a", 0, 0, 0700);
    EXPECT_TRUE(open_private_directory(at("a")));
    fs::create_directory_symlink(at("a"), at("link"));
    EXPECT_FALSE(open_private_directory(at("link")));
    make("a", 0, 0, 0701);
    EXPECT_FALSE(open_private_directory(at("a")));
    make("a", other, 0, 0700);
    EXPECT_FALSE(open_private_directory(at("a")));
    EXPECT_FALSE(open_private_directory(at("missing")));
}

TEST_F(OwnershipTest, InstallationsOfOneOwnerOrOneGroup) {
    const auto info = [](uid_t uid, mode_t mode) {
        struct stat made {};
        made.st_uid = uid;
        made.st_mode = mode;
        return made;
    };
    const auto file = [&](uid_t uid, mode_t mode = 0644) { return info(uid, S_IFREG | mode); };
    const auto directory = [&](uid_t uid, mode_t mode = 0755) { return info(uid, S_IFDIR | mode); };
    EXPECT_EQ(why_foreign(directory(other), file(other), other), nullptr);
    EXPECT_EQ(why_foreign(directory(0), file(0), other), nullptr);
    EXPECT_NE(why_foreign(directory(0), file(other + 1), other), nullptr);
    EXPECT_NE(why_foreign(directory(other + 1), file(other), other), nullptr);
    EXPECT_EQ(why_foreign(directory(other, 02775), file(other + 1, 0664), other), nullptr);
    EXPECT_NE(why_foreign(directory(0, 01777), file(other), other), nullptr);
    EXPECT_NE(why_foreign(directory(0, 03775), file(other + 1), other), nullptr);
    EXPECT_NE(why_foreign(directory(other), file(other, 0666), other), nullptr);
}

} // namespace
} // namespace containerize
