#include "../good.h"
#include "../temporary.h"
#include "../users.h"
#include "base/store.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::base {

TEST(Store, ItsLockIsForThoseWhoCanWriteToIt) {
    const mode_t before = umask(022);
    const struct { mode_t store, lock; } cases[] = {{0755, 0600}, {0700, 0600}, {02775, 0660}, {0770, 0660}};
    for (const auto& [mode, expected] : cases) {
        const test::TemporaryDirectory store;
        ASSERT_EQ(chmod(store.path().c_str(), mode), 0);
        const auto file = store.write("image", "content");
        test::good(add_image(
            store.path(),
            {.file = file, .references = {"docker://x/y:1"}, .digest = "sha256:" + std::string(64, 'a')}));
        EXPECT_EQ(test::mode_of(store / ".lock"), expected) << std::oct << mode;
        // A lock that an earlier version made gets the mode, too.
        ASSERT_EQ(chmod((store / ".lock").c_str(), 0640), 0);
        const auto image = find_image({store.path()}, "docker://x/y:1");
        ASSERT_TRUE(image);
        test::good(add_reference(store.path(), *image, "docker://x/y:2"));
        EXPECT_EQ(test::mode_of(store / ".lock"), expected) << std::oct << mode;
    }
    umask(before);
}

TEST(Store, ItsLockHasItsGroup) {
    const test::TemporaryDirectory store;
    if (chown(store.path().c_str(), static_cast<uid_t>(-1), 12345) != 0) GTEST_SKIP() << "needs root";
    ASSERT_EQ(chmod(store.path().c_str(), 0770), 0);
    const auto file = store.write("image", "content");
    test::good(add_image(store.path(),
                         {.file = file, .references = {}, .digest = "sha256:" + std::string(64, 'a')}));
    struct stat info {};
    ASSERT_EQ(stat((store / ".lock").c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, 12345U);
    EXPECT_EQ(test::mode_of(store / ".lock"), 0660U);
}

namespace {

constexpr gid_t group = 70009;

/// Gives a directory, and what is made in it, an ACL by which another user has all access.
bool share_with(const fs::path& directory, uid_t user) {
    struct Entry {
        std::uint16_t tag, permissions;
        std::uint32_t id;
    };
    constexpr std::uint32_t none = 0xFFFFFFFF;
    constexpr std::uint32_t version = 2;
    const Entry entries[] = {
        {0x01, 7, none}, {0x02, 7, user}, {0x04, 5, none}, {0x10, 7, none}, {0x20, 0, none}};
    std::string acl(reinterpret_cast<const char*>(&version), sizeof version);
    acl.append(reinterpret_cast<const char*>(entries), sizeof entries);
    for (const char* name : {"system.posix_acl_access", "system.posix_acl_default"})
        if (setxattr(directory.c_str(), name, acl.data(), acl.size(), 0) != 0) return false;
    return true;
}

/// What `work` returns as that user, who is in the group, with the usual umask.
template<class Work>
std::string as_member(uid_t user, const Work& work) {
    return test::in_process([&] {
        umask(022);
        if (setgroups(1, &group) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(1);
        return work();
    });
}

template<class T>
std::string message_of(const Result<T>& result) {
    return result ? "" : to_string(result.error());
}

} // namespace

TEST(Store, ItsLockIsForAllToWhomAnAclGivesIt) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    const test::TemporaryDirectory store;
    constexpr uid_t owner = 70001, other = 70002;
    ASSERT_EQ(chown(store.path().c_str(), owner, group), 0);
    if (!share_with(store.path(), other)) GTEST_SKIP() << "this filesystem has no ACLs";
    const auto digest = "sha256:" + std::string(64, 'a');
    const auto added = test::as_user(owner, 022, [&] {
        return message_of(add_image(
            store.path(),
            {.file = store.write("image", "content"), .references = {"docker://x/y:1"}, .digest = digest}));
    });
    ASSERT_EQ(added, "");
    const auto lock = [&](uid_t user) {
        return test::as_user(user, 022, [&] { return message_of(try_lock(store / ".lock")); });
    };
    EXPECT_EQ(lock(other), "");
    EXPECT_NE(lock(70003), "");
    // One that has lost the access gets it back.
    ASSERT_EQ(chmod((store / ".lock").c_str(), 0600), 0);
    ASSERT_NE(lock(other), "");
    const auto changed = test::as_user(owner, 022, [&] {
        return message_of(add_reference(store.path(), *find_image({store.path()}, digest), "docker://x/y:2"));
    });
    ASSERT_EQ(changed, "");
    EXPECT_EQ(lock(other), "");
}

TEST(Store, AllOfItsGroupCanPull) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    const test::TemporaryDirectory directory;
    ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
    const auto store = directory / "bases";
    fs::create_directory(store);
    ASSERT_EQ(chown(store.c_str(), 70001, group), 0);
    ASSERT_EQ(chmod(store.c_str(), 02775), 0);
    const auto digest = "sha256:" + std::string(64, 'a');
    const auto pull = [&](uid_t user, bool finish) {
        return as_member(user, [&] {
            auto staging = StagingDirectory::enter(store, digest);
            if (!staging) return to_string(staging.error());
            const auto written = write_file(staging->path() / "layer", "part");
            if (finish) staging->clean();
            return message_of(written);
        });
    };
    EXPECT_EQ(pull(70001, true), "");
    EXPECT_EQ(pull(70002, false), "");
    EXPECT_EQ(pull(70001, false), "") << "although another member has left a part of this image";
    EXPECT_EQ(pull(70002, true), "");
}

} // namespace containerize::base
