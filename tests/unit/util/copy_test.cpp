#include "../temporary.h"
#include "core/filesystem.h"
#include "util/copy.h"
#include "util/digest.h"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace containerize {
namespace {

using test::TemporaryDirectory;

TEST(CopyFile, DigestProgressAndNoOverwriting) {
    const TemporaryDirectory directory;
    const auto from = directory.write("from", std::string(20U << 20U, 'x'));
    const auto to = directory / "to";
    std::vector<std::uint64_t> seen;
    const auto digest = copy_file_synced(from, to, [&](std::uint64_t done) { seen.push_back(done); });
    EXPECT_EQ(digest.value(), "6adfa0775cbd16a3f50d1fda1d7bd7f375dd1f9af5e6dfb751a87d3dff68699c");
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{16U << 20U, 20U << 20U}));
    EXPECT_EQ(to_string(copy_file_synced(from, to).error()),
              to.string() + ": cannot write the file: File exists");
    EXPECT_EQ(fs::file_size(to), 20U << 20U);
    EXPECT_FALSE(copy_file_synced(directory / "absent", directory / "new"));
    EXPECT_FALSE(fs::exists(directory / "new"));
}

TEST(MoveFileSynced, IsTheSameFileWhereThatGivesWhatACopyWould) {
    const TemporaryDirectory directory;
    const auto inode = [](const fs::path& path) {
        struct stat info {};
        return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
    };
    const auto digest = sha256("content");
    auto from = directory.write("from", "content");
    const auto before = inode(from);
    const auto to = directory / "to";
    EXPECT_EQ(move_file_synced(from, to).value(), digest);
    EXPECT_EQ(inode(to), before);
    EXPECT_FALSE(fs::exists(from));

    from = directory.write("again", "other");
    EXPECT_FALSE(move_file_synced(from, to));
    EXPECT_EQ(read_file(to).value(), "content");
    EXPECT_EQ(read_file(from).value(), "other");

    // A file created there would belong to the directory's group.
    const auto shared = directory / "shared";
    fs::create_directory(shared);
    ASSERT_EQ(chmod(shared.c_str(), 02755), 0);
    EXPECT_EQ(move_file_synced(to, shared / "to").value(), digest);
    EXPECT_NE(inode(shared / "to"), before);
    EXPECT_FALSE(fs::exists(to));

    const TemporaryDirectory memory("/dev/shm");
    const auto elsewhere = memory / "to";
    EXPECT_EQ(move_file_synced(shared / "to", elsewhere).value(), digest);
    EXPECT_EQ(read_file(elsewhere).value(), "content");
    EXPECT_FALSE(fs::exists(shared / "to"));
}

TEST(MoveFile, TakesNobodysRightsAlong) {
    const TemporaryDirectory directory;
    const auto from = directory.write("from", "content"), to = directory / "to";
    // An access list, in the form of its extended attribute, that lets another user write.
    struct Entry {
        std::uint16_t tag, permissions;
        std::uint32_t id;
    };
    struct List {
        std::uint32_t version;
        std::array<Entry, 5> entries;
    };
    const List list{.version = 2,
                    .entries = {{{1, 6, ~0U}, {2, 6, 65534}, {4, 4, ~0U}, {0x10, 6, ~0U}, {0x20, 4, ~0U}}}};
    ASSERT_EQ(setxattr(from.c_str(), "system.posix_acl_access", &list, sizeof list, 0), 0);
    ASSERT_GT(getxattr(from.c_str(), "system.posix_acl_access", nullptr, 0), 0);
    EXPECT_TRUE(move_file_synced(from, to));
    EXPECT_LE(getxattr(to.c_str(), "system.posix_acl_access", nullptr, 0), 0);
    EXPECT_EQ(read_file(to).value(), "content");
    EXPECT_FALSE(fs::exists(from));
}

TEST(CopyFile, NorADigestWaitsForAPipe) {
    const TemporaryDirectory directory;
    const auto pipe = directory / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(copy_file_synced(pipe, directory / "copy"));
    EXPECT_FALSE(sha256_of_file(pipe));
}

} // namespace
} // namespace containerize
