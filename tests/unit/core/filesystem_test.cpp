#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "core/staging.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace containerize {

namespace {

using test::mode_of;
using test::TemporaryDirectory;

std::size_t entries(const fs::path& directory) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), {}));
}

class Umask {
public:
    explicit Umask(mode_t bits) : old_(umask(bits)) {}
    Umask(const Umask&) = delete;
    Umask& operator=(const Umask&) = delete;
    ~Umask() { umask(old_); }

private:
    mode_t old_;
};

} // namespace

TEST(ReadFile, WithinItsLimit) {
    const TemporaryDirectory directory;
    const auto file = directory.write("f", std::string(100, 'x'));
    EXPECT_EQ(read_file(file, 100).value(), std::string(100, 'x'));
    EXPECT_EQ(to_string(read_file(file, 99).error()),
              file.string() + ": cannot read the file: it is larger than 99 bytes");
    fs::resize_file(file, (16U << 20U) + 1);
    EXPECT_EQ(to_string(test::error_of(read_file(file, 16U << 20U))),
              file.string() + ": cannot read the file: it is larger than 16 MiB");
    EXPECT_EQ(to_string(read_file(directory.path()).error()),
              directory.path().string() + ": cannot read the file: Is a directory");
}

TEST(ReadFile, DoesNotWaitForWhatIsNoFile) {
    const TemporaryDirectory directory;
    const auto pipe = directory / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(to_string(read_file(pipe).error()),
              pipe.string() + ": cannot read the file: it is not a regular file");
    EXPECT_FALSE(OpenFile::open(pipe));
    EXPECT_EQ(read_file("/dev/null").value_or("none"), "") << "given for an empty file";
}

TEST(WriteFile, ReplacesAndLeavesNothingBeside) {
    const TemporaryDirectory directory;
    const Umask bits(027);
    const auto file = directory / "f";
    ASSERT_TRUE(write_file(file, "one"));
    ASSERT_TRUE(write_file(file, "two", true));
    EXPECT_EQ(read_file(file).value(), "two");
    EXPECT_EQ(mode_of(file), 0750U);
    EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(MakeDirectories, ThatOthersCannotWriteTo) {
    const TemporaryDirectory directory;
    const Umask none(0);
    const auto below = directory / "a/b/c";
    ASSERT_TRUE(make_directories(below));
    for (const auto& made : {directory / "a", directory / "a/b", below})
        EXPECT_EQ(mode_of(made), 0775U);
    ASSERT_TRUE(write_file(below / "file", "text"));
    EXPECT_EQ(mode_of(below / "file"), 0664U);
    ASSERT_TRUE(write_file(below / "program", "text", true));
    EXPECT_EQ(mode_of(below / "program"), 0775U);
    EXPECT_TRUE(make_directories(below)) << "it exists";
    EXPECT_TRUE(make_directories(directory / "a/b/c/d/"));
    EXPECT_TRUE(fs::is_directory(below / "d"));
    for (const auto& taken : {below / "file", below / "file/more", directory / "a/b/c/file/more/yet"})
        EXPECT_FALSE(make_directories(taken)) << taken;
    EXPECT_EQ(to_string(make_directory(below / "file").error()),
              (below / "file").string() + ": cannot create a directory: Not a directory");
    fs::create_directory_symlink("c", directory / "a/b/link");
    EXPECT_TRUE(make_directories(directory / "a/b/link/e"));
    EXPECT_TRUE(fs::is_directory(below / "e"));
}

TEST(WriteFile, FailureLeavesTheOldContent) {
    const TemporaryDirectory directory;
    fs::create_directory(directory / "d");
    const auto done = write_file(directory / "d", "text");
    EXPECT_EQ(to_string(done.error()),
              (directory / "d").string() + ": cannot write the file: Is a directory");
    EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(RemoveTree, ReadOnlyDirectoriesAndLinks) {
    const TemporaryDirectory directory;
    const auto outside = directory.write("outside/kept", "x");
    const auto tree = directory / "tree";
    directory.write("tree/a/b/file", "x");
    fs::create_directory_symlink(directory / "outside", tree / "a/link");
    fs::create_symlink("nowhere", tree / "dangling");
    chmod((tree / "a/b").c_str(), 0);
    chmod((tree / "a").c_str(), 0500);
    ASSERT_TRUE(remove_tree(tree));
    EXPECT_FALSE(fs::exists(tree));
    EXPECT_TRUE(fs::exists(outside));
}

TEST(RemoveTree, OfWhatIsNoDirectory) {
    const TemporaryDirectory directory;
    const auto kept = directory.write("d/kept", "x");
    fs::create_directory_symlink("d", directory / "link");
    EXPECT_TRUE(remove_tree(directory / "link"));
    EXPECT_FALSE(fs::is_symlink(directory / "link"));
    EXPECT_TRUE(fs::exists(kept));
    EXPECT_TRUE(remove_tree(directory / "absent"));
    EXPECT_TRUE(remove_tree(directory / "d/"));
    EXPECT_FALSE(fs::exists(directory / "d"));
}

TEST(RemoveTree, NeverOfAMount) {
    // procfs is mounted wherever tests run, so it can show that a mount is refused.
    const auto done = remove_tree("/proc");
    EXPECT_EQ(to_string(done.error()), "/proc: cannot remove: Device or resource busy");
}

TEST(Resolve, DotsLinksAndWhatIsNotThere) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "real");
    fs::create_directory_symlink("real", directory / "link");
    EXPECT_EQ(resolve(directory / "link/./x/../new").value(), directory / "real/new");
    EXPECT_EQ(resolve(directory / "real/").value(), directory / "real");
    EXPECT_EQ(resolve("/").value(), "/");
    EXPECT_EQ(resolve("relative").value(), fs::current_path() / "relative");
}

TEST(FilesystemType, OfKnownPlaces) {
    EXPECT_EQ(filesystem_type("/proc/self"), "proc");
    EXPECT_EQ(filesystem_type("/proc/no/such/thing"), "proc");
    EXPECT_EQ(filesystem_type("/tmp/no/such"), filesystem_type("/tmp"));
}

TEST(MountPoints, BelowADirectory) {
    const auto all = mount_points_below("/");
    EXPECT_NE(std::ranges::find(all, "/proc"), all.end());
    const auto some = mount_points_below("/proc");
    EXPECT_EQ(some.front(), "/proc");
    EXPECT_LT(some.size(), all.size());
    EXPECT_TRUE(mount_points_below("/pro").empty());
}

TEST(FilesystemType, WhichAreOnANetwork) {
    for (const auto* type :
         {"lustre", "nfs", "nfs4", "gpfs", "beegfs", "cifs", "ceph", "fuse.sshfs", "fuse.glusterfs", "9p"})
        EXPECT_TRUE(is_network_filesystem(type)) << type;
    for (const auto* type : {"ext4", "xfs", "tmpfs", "overlay", "fuse.fuse-overlayfs", "unknown", "fuseblk"})
        EXPECT_FALSE(is_network_filesystem(type)) << type;
}

TEST(AvailableBytes, AlsoForWhatIsNotThereYet) {
    EXPECT_GT(available_bytes("/tmp").value(), 0U);
    EXPECT_GT(available_bytes("/tmp/no/such").value(), 0U);
}

TEST(Staging, IsPrivateAndRemoved) {
    const TemporaryDirectory parent;
    fs::path path;
    {
        auto staging = test::good(Staging::create(parent.path()));
        path = staging.path();
        EXPECT_EQ(path.parent_path(), parent.path());
        EXPECT_TRUE(
            path.filename().string().starts_with("containerize-build-" + std::to_string(geteuid()) + "-"));
        EXPECT_EQ(mode_of(path), 0700U);
        fs::create_directories(path / "ro/sub");
        chmod((path / "ro").c_str(), 0500);
        // A directory that was moved from is not removed twice.
        const Staging moved = std::move(staging);
        EXPECT_EQ(moved.path(), path);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST(Staging, LeavesNothingWhereItCannotBeOpened) {
    const TemporaryDirectory parent;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(STDIN_FILENO);
    close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto staging = Staging::create(parent.path());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(staging);
    EXPECT_EQ(staging.error().why, std::strerror(EMFILE));
    EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(Staging, KeptOnRequest) {
    const TemporaryDirectory parent;
    fs::path path;
    {
        auto staging = test::good(Staging::create(parent.path()));
        parent.write(staging.path().filename() / "file", "x");
        path = staging.keep();
    }
    sweep_staging(parent.path());
    EXPECT_TRUE(fs::exists(path / "file"));
    EXPECT_EQ(names_in(parent.path()).size(), 1U);
}

TEST(Staging, SweepTakesOnlyWhatIsAbandoned) {
    const TemporaryDirectory parent;
    const auto prefix = "containerize-build-" + std::to_string(geteuid()) + "-";
    const auto in_use = Staging::create(parent.path());
    const auto abandoned = parent.write(prefix + "aaaaaa/file", "x").parent_path();
    const auto other_name = parent.write(prefix + "longer-name/file", "x");
    const auto plain_file = parent.write(prefix + "bbbbbb", "x");
    const auto target = parent.write("target/file", "x");
    fs::create_directory_symlink("target", parent / (prefix + "cccccc"));
    const auto others = parent.write("containerize-build-99999-aaaaaa/file", "x");
    sweep_staging(parent.path());
    EXPECT_FALSE(fs::exists(abandoned));
    for (const auto& kept : {in_use->path(), other_name, plain_file, target, others})
        EXPECT_TRUE(fs::exists(kept)) << kept;
    EXPECT_TRUE(fs::is_symlink(parent / (prefix + "cccccc")));
}

TEST(Staging, SweepLeavesOtherUsersDirectories) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a directory of another user";
    const TemporaryDirectory parent;
    const auto path = parent / "containerize-build-0-aaaaaa";
    fs::create_directory(path);
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    sweep_staging(parent.path());
    EXPECT_TRUE(fs::exists(path));
}

TEST(Staging, RefusesUnsafeParents) {
    const TemporaryDirectory directory;
    chmod(directory.path().c_str(), 0777);
    constexpr auto hint = "\nChoose a directory on a local disk of this node with --tmpdir.";
    EXPECT_EQ(to_string(Staging::create(directory.path()).error()),
              directory.path().string() +
                  ": cannot build in this directory: all users can write to it, and it has no sticky bit" +
                  hint);
    const auto file = directory.write("f", "");
    EXPECT_EQ(to_string(Staging::create(file).error()),
              file.string() + ": cannot build in this directory: it is not a directory" + hint);
    EXPECT_EQ(to_string(Staging::create("/no/such").error()),
              std::string("/no/such: cannot build in this directory: No such file or directory") + hint);
}

} // namespace containerize
