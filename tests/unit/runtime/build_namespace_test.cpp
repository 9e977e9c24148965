// An environment that is changed over its first image: what the programs of a build saw is what the final
// image has.
#include "../temporary.h"
#include "image/unpack.h"
#include "image/writer.h"
#include "runtime/build_namespace.h"
#include "runtime/namespace.h"
#include "util/process.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::runtime {
namespace {

using test::TemporaryDirectory;

/// Every path with its type, mode, time, and content or target.
std::map<std::string, std::string> listing_of(const fs::path& root) {
    std::map<std::string, std::string> listing;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        struct stat info {};
        EXPECT_EQ(lstat(entry.path().c_str(), &info), 0) << entry.path();
        std::string& text = listing[entry.path().lexically_relative(root)];
        // The image is made fit for sharing.
        text = std::to_string(image::mode_for_sharing(info.st_mode, 022) | (info.st_mode & S_IFMT));
        if (S_ISLNK(info.st_mode)) text = "link to " + fs::read_symlink(entry.path()).string();
        if (S_ISREG(info.st_mode))
            text += " " + std::to_string(info.st_mtime) + " " + std::to_string(info.st_nlink) + " " +
                    read_file(entry.path()).value_or("unreadable");
    }
    return listing;
}

void fill(std::mt19937& random, const fs::path& directory, int depth) {
    fs::create_directories(directory);
    for (unsigned i = 0; i < 6; ++i) {
        const auto path = directory / ("f" + std::to_string(i));
        switch (random() % 4) {
        case 0:
            std::ofstream(path) << std::string(random() % 300'000, static_cast<char>('a' + random() % 3));
            break;
        case 1:
            std::ofstream(path) << "small " << random();
            fs::create_hard_link(path, directory / ("h" + std::to_string(i)));
            break;
        case 2:
            fs::create_symlink("f" + std::to_string(random() % 6), path);
            break;
        default:
            if (depth > 0) fill(random, path, depth - 1);
        }
    }
}

// Removes, replaces, renames and adds, so that there are whiteouts, opaque directories and copied-up files.
void change(std::mt19937& random, const fs::path& root) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root))
        paths.push_back(entry.path());
    std::ranges::shuffle(paths, random);
    for (const auto& path : paths) {
        std::error_code gone;
        const auto status = fs::symlink_status(path, gone);
        if (!fs::exists(status)) continue;
        switch (random() % 8) {
        case 0:
            fs::remove_all(path);
            break;
        case 1: // a file where a directory was, or a directory where anything was
            fs::remove_all(path);
            if (random() % 2 == 0)
                fill(random, path, 1);
            else
                std::ofstream(path) << "new " << random();
            break;
        case 2:
            if (fs::is_regular_file(status)) std::ofstream(path, std::ios::app) << "more";
            break;
        case 3:
            if (!fs::is_directory(status))
                fs::rename(path, path.parent_path() / ("moved" + path.filename().string()));
            break;
        case 4:
            if (fs::is_regular_file(status))
                fs::create_hard_link(path, path.parent_path() / ("again" + path.filename().string()));
            break;
        default:
            break;
        }
    }
}

class ChangedImages : public testing::TestWithParam<unsigned> {};

TEST_P(ChangedImages, HaveWhatTheBuildsProgramsSaw) {
    const TemporaryDirectory directory;
    std::mt19937 random(GetParam());
    auto space = BuildNamespace::create();
    ASSERT_TRUE(space) << to_string(space.error());
    const auto tree = directory.path() / "tree, with:odd name", prefix = directory.path() / "prefix";
    const auto staging = directory.path() / "staging:a,b", image = staging / "image";
    fill(random, tree, 3);
    fs::create_directories(staging);
    fs::create_directory(prefix);
    auto writer = image::Writer::create(image, {});
    ASSERT_TRUE(writer) << to_string(writer.error());
    ASSERT_TRUE(image::add_tree(*writer, tree, 022));
    const auto first = writer->checkpoint();
    ASSERT_TRUE(first) << to_string(first.error());

    const auto mounted = space->mount_overlay(std::array{image}, staging, prefix);
    ASSERT_TRUE(mounted) << to_string(mounted.error());
    EXPECT_EQ(listing_of(space->seen(prefix)), listing_of(tree));
    change(random, space->seen(prefix));
    const auto seen = listing_of(space->seen(prefix));
    EXPECT_NE(seen, listing_of(tree));
    EXPECT_TRUE(fs::is_empty(prefix)) << "the host sees nothing of it";

    ASSERT_TRUE(image::add_tree(*writer, staging / "upper", 022));
    const auto stats = writer->finish();
    ASSERT_TRUE(stats) << to_string(stats.error());
    const auto unpacked = directory.path() / "unpacked", ours = directory.path() / "ours";
    const auto outcome = run({.argv = {"unsquashfs", "-q", "-n", "-d", unpacked, image},
                              .environment = {},
                              .working_directory = {},
                              .in_child = {},
                              .on_line = {}});
    ASSERT_TRUE(outcome && outcome->ok()) << outcome->output;
    // Hard links are kept as such within a layer, while overlayfs shows some apart: their count is the
    // image's own.
    const auto without_links = [](std::map<std::string, std::string> listing) {
        for (auto& [path, text] : listing)
            if (const auto time = text.find(' '); time != std::string::npos && !text.starts_with("link"))
                text.erase(text.find(' ', time + 1),
                           text.find(' ', text.find(' ', time + 1) + 1) - text.find(' ', time + 1));
        return listing;
    };
    EXPECT_EQ(without_links(listing_of(unpacked)), without_links(seen));
    fs::create_directory(ours);
    const auto done = image::unpack(std::array{image}, ours);
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(listing_of(ours), listing_of(unpacked));
    std::uint64_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(unpacked))
        files += fs::is_regular_file(entry.symlink_status()) ? 1 : 0;
    EXPECT_LE(stats->files, files);
}
INSTANTIATE_TEST_SUITE_P(Seeds, ChangedImages, testing::Range(1U, 9U));

TEST(BuildNamespace, BindsADirectoryOverThePrefix) {
    const TemporaryDirectory directory;
    auto space = BuildNamespace::create();
    ASSERT_TRUE(space) << to_string(space.error());
    directory.write("tree/file", "content");
    const auto prefix = directory.path() / "prefix";
    fs::create_directory(prefix);
    ASSERT_TRUE(space->bind(directory.path() / "tree", prefix));
    EXPECT_EQ(read_file(space->seen(prefix) / "file").value_or(""), "content");
    EXPECT_TRUE(fs::is_empty(prefix));
    const auto missing = space->bind(directory.path() / "tree", directory.path() / "missing");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().why, "No such file or directory");
    EXPECT_EQ(missing.error().where, (directory.path() / "missing").string());
}

TEST(BuildNamespace, AStagingDirectoryWithoutAttributesIsRefused) {
    const TemporaryDirectory directory;
    if (geteuid() != 0) GTEST_SKIP() << "only root can mount a ramfs";
    const auto staging = directory.path() / "staging", prefix = directory.path() / "prefix";
    fs::create_directory(staging);
    fs::create_directory(prefix);
    const auto mounted = run({.argv = {"mount", "-t", "ramfs", "none", staging},
                              .environment = {},
                              .working_directory = {},
                              .in_child = {},
                              .on_line = {}});
    if (!mounted || !mounted->ok()) GTEST_SKIP() << "no mounts here";
    auto space = BuildNamespace::create();
    ASSERT_TRUE(space) << to_string(space.error());
    const auto refused = space->mount_overlay(std::array{directory.path() / "image"}, staging, prefix);
    EXPECT_TRUE(run({.argv = {"umount", "-l", staging},
                     .environment = {},
                     .working_directory = {},
                     .in_child = {},
                     .on_line = {}}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "the staging directory's filesystem has no extended attributes");
}

} // namespace
} // namespace containerize::runtime
