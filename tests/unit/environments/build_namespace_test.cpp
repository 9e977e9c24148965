// An environment that is changed over its first image: the final image contains what the programs of the
// build saw.
#include "../good.h"
#include "../happens.h"
#include "../random_trees.h"
#include "../temporary.h"
#include "environments/build_namespace.h"
#include "image/unpack.h"
#include "image/writer.h"
#include "launch/namespace.h"
#include "prefix/cleanup_process.h"
#include "util/process.h"

#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::environments {
namespace {

using test::change;
using test::fill;
using test::listing_of;
using test::TemporaryDirectory;
using test::without_links;

class ChangedImages : public testing::TestWithParam<unsigned> {};

TEST_P(ChangedImages, HaveWhatTheBuildsProgramsSaw) {
    const TemporaryDirectory directory;
    std::mt19937 random(GetParam());
    auto space = test::good(BuildNamespace::create());
    const auto tree = directory / "tree, with:odd name", prefix = directory / "prefix";
    const auto staging = directory / "staging:a,b", image = staging / "image";
    fill(random, tree, 3);
    fs::create_directories(staging);
    fs::create_directory(prefix);
    auto writer = test::good(image::Writer::create(image, {}));
    ASSERT_TRUE(image::add_tree(writer, tree, 022));
    const auto first = writer.checkpoint();
    ASSERT_TRUE(first) << to_string(first.error());

    const auto mounted = space.mount_overlay(std::array{image}, staging, prefix);
    ASSERT_TRUE(mounted) << to_string(mounted.error());
    EXPECT_EQ(listing_of(space.tree()), listing_of(tree));
    change(random, space.tree());
    const auto seen = listing_of(space.tree());
    EXPECT_NE(seen, listing_of(tree));
    EXPECT_TRUE(fs::is_empty(prefix)) << "the host sees nothing of it";

    ASSERT_TRUE(image::add_tree(writer, staging / "upper", 022));
    const auto stats = test::good(writer.finish());
    const auto unpacked = directory / "unpacked", ours = directory / "ours";
    const auto outcome = run({.argv = {"unsquashfs", "-q", "-n", "-d", unpacked, image}});
    ASSERT_TRUE(outcome && outcome->ok()) << outcome->output;
    EXPECT_EQ(without_links(listing_of(unpacked)), without_links(seen));
    fs::create_directory(ours);
    const auto done = image::unpack(std::array{image}, ours);
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(listing_of(ours), listing_of(unpacked));
    std::uint64_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(unpacked))
        files += fs::is_regular_file(entry.symlink_status()) ? 1 : 0;
    EXPECT_LE(stats.files, files);
}
INSTANTIATE_TEST_SUITE_P(Seeds, ChangedImages, testing::Range(1U, 9U));

TEST(BuildNamespace, BindsADirectoryOverThePrefix) {
    const TemporaryDirectory directory;
    auto space = test::good(BuildNamespace::create());
    directory.write("tree/file", "content");
    const auto prefix = directory / "prefix";
    fs::create_directory(prefix);
    ASSERT_TRUE(space.bind(directory / "tree", prefix, prefix));
    EXPECT_EQ(read_file(space.tree() / "file").value_or(""), "content");
    EXPECT_TRUE(fs::is_empty(prefix));
    ASSERT_TRUE(space.bind(directory / "tree", directory / "missing", directory / "missing"));
    EXPECT_EQ(read_file(space.tree() / "file").value_or(""), "content");
    const auto missing = test::error_of(space.bind(directory / "no tree", prefix, prefix));
    EXPECT_EQ(missing.why, "No such file or directory");
    EXPECT_EQ(missing.where, prefix.string());
}

TEST(BuildNamespace, AStagingDirectoryWithoutAttributesIsRefused) {
    const TemporaryDirectory directory;
    if (geteuid() != 0) GTEST_SKIP() << "only root can mount a ramfs";
    const auto staging = directory / "staging", prefix = directory / "prefix";
    fs::create_directory(staging);
    fs::create_directory(prefix);
    const auto mounted = run({.argv = {"mount", "-t", "ramfs", "none", staging}});
    ASSERT_TRUE(mounted && mounted->ok());
    auto space = test::good(BuildNamespace::create());
    const auto refused = space.mount_overlay(std::array{directory / "image"}, staging, prefix);
    EXPECT_TRUE(run({.argv = {"umount", "-l", staging}}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "the staging directory's filesystem has no extended attributes");
}

TEST(BuildNamespace, IsEmptyBeforeItsDirectoriesAreRemoved) {
    const TemporaryDirectory directory;
    const fs::path made = directory / "prefix";
    auto cleanup = prefix::CleanupProcess::start();
    auto space = BuildNamespace::create();
    ASSERT_TRUE(space) << to_string(space.error());
    // Like a worker of a killed build: in a process group of its own, and it recreates its directory.
    const pid_t worker = fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
        setsid();
        closefrom(STDERR_FILENO + 1); // among them the cleanup process's socket
        if (launch::join_namespaces(space->pid()) != 0) _exit(1);
        for (;;)
            mkdir(made.c_str(), 0755);
    }
    EXPECT_TRUE(test::happens([&] { return fs::exists(made); }));
    cleanup->end_processes_first(space->pid());
    cleanup->remove_directory_later(made);
    // The worker is our child: until we wait for it, it exists, but in no namespace.
    { const auto ended = std::move(cleanup); }
    EXPECT_FALSE(fs::exists(made));
    int status = 0;
    const bool ended = test::happens([&] { return waitpid(worker, &status, WNOHANG) == worker; });
    EXPECT_TRUE(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!ended) kill(worker, SIGKILL); // it would be busy for ever
}
} // namespace
} // namespace containerize::environments
