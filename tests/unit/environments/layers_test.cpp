// Layers over layers: together they show what was seen when each of them was made.
#include "../good.h"
#include "../random_trees.h"
#include "../temporary.h"
#include "environments/build_namespace.h"
#include "image/changes.h"
#include "image/relayout.h"
#include "image/unpack.h"
#include "util/process.h"

#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace containerize::runtime {
namespace {

using test::change;
using test::fill;
using test::listing_of;
using test::TemporaryDirectory;
using test::without_links;

using Listing = std::map<std::string, std::string>;

class StackedLayers : public testing::TestWithParam<unsigned> {
protected:
    void SetUp() override {
        fill(random_, directory_ / "tree", 3);
        fs::create_directory(prefix_);
        images_ = {directory_ / "0"};
        ASSERT_TRUE(image::write_tree(directory_ / "tree", images_.front(), {}, 022));
        expected_ = without_links(listing_of(directory_ / "tree"));
    }

    fs::path next_image() {
        images_.push_back(directory_ / std::to_string(images_.size()));
        return images_.back();
    }

    fs::path fresh_directory(const std::string& name) {
        auto path = directory_ / (name + std::to_string(images_.size()));
        fs::create_directory(path);
        return path;
    }

    /// With an overlay over the images so far, which must show their content.
    void add_layer_by_overlay() {
        auto space = environments::BuildNamespace::create();
        ASSERT_TRUE(space) << to_string(space.error());
        const auto staging = fresh_directory("staging");
        const auto mounted = space->mount_overlay(images_, staging, prefix_);
        ASSERT_TRUE(mounted) << to_string(mounted.error());
        ASSERT_EQ(without_links(listing_of(space->tree())), expected_);
        change(random_, space->tree());
        expected_ = without_links(listing_of(space->tree()));
        pack(image::changes_in_overlay(staging / "upper", images_, 022));
    }

    /// With fuse-overlayfs over them.
    void add_layer_by_fuse_overlay() {
        auto space = environments::BuildNamespace::create();
        ASSERT_TRUE(space) << to_string(space.error());
        const auto staging = fresh_directory("staging");
        const auto mounted = space->mount_fuse_overlay("/usr/bin/fuse-overlayfs", images_, staging, prefix_);
        ASSERT_TRUE(mounted) << to_string(mounted.error());
        ASSERT_EQ(without_links(listing_of(space->tree())), expected_);
        const auto none = image::changes_in_fuse_overlay(staging / "upper", space->tree(), images_, 022);
        ASSERT_TRUE(none) << to_string(none.error());
        EXPECT_TRUE(none->files.empty());
        change(random_, space->tree());
        expected_ = without_links(listing_of(space->tree()));
        pack(image::changes_in_fuse_overlay(staging / "upper", space->tree(), images_, 022));
    }

    /// With a copy on disk.
    void add_layer_by_copy() {
        const auto copy = fresh_directory("copy");
        ASSERT_TRUE(image::unpack(images_, copy));
        ASSERT_EQ(without_links(listing_of(copy)), expected_);
        const auto before = image::take_snapshot(copy);
        ASSERT_TRUE(before);
        const auto none = image::changes_since(*before, copy, images_, 022);
        ASSERT_TRUE(none) << to_string(none.error());
        EXPECT_TRUE(none->files.empty());
        change(random_, copy);
        expected_ = without_links(listing_of(copy));
        pack(image::changes_since(*before, copy, images_, 022));
    }

    void pack(Result<image::Changes> changes) {
        ASSERT_TRUE(changes) << to_string(changes.error());
        EXPECT_FALSE(changes->files.empty());
        const auto written = image::write_changes(*changes, next_image(), {});
        ASSERT_TRUE(written) << to_string(written.error());
    }

    void check_merged() {
        auto layers = image::open_layers(images_);
        ASSERT_TRUE(layers) << to_string(layers.error());
        const auto linked = directory_ / "linked", merged = directory_ / "merged";
        const auto tree = fresh_directory("all"), from_linked = fresh_directory("from-linked");
        ASSERT_TRUE(image::unpack(images_, tree));
        EXPECT_EQ(without_links(listing_of(tree)), expected_);
        ASSERT_TRUE(image::write_merged(**layers, linked, {}));
        ASSERT_TRUE(image::unpack({&linked, 1}, from_linked));
        EXPECT_EQ(listing_of(from_linked), listing_of(tree));
        // Compressed anew, it must have the same bytes as one packed from the unpacked tree.
        ASSERT_TRUE(image::write_merged(**layers, merged, {}, {.compress_anew = true}));
        const auto root = (*layers)->inode((*layers)->root());
        const timespec time{.tv_sec = root->mtime, .tv_nsec = 0}, times[] = {time, time};
        chmod(tree.c_str(), root->mode & 0777U);
        utimensat(AT_FDCWD, tree.c_str(), times, 0);
        const auto afresh = directory_ / "afresh";
        ASSERT_TRUE(image::write_tree(tree, afresh, {}, 022));
        EXPECT_TRUE(same_content(merged, afresh));
    }

    TemporaryDirectory directory_;
    std::mt19937 random_{GetParam()};
    fs::path prefix_ = directory_ / "prefix";
    std::vector<fs::path> images_;
    Listing expected_;
};

TEST_P(StackedLayers, ShowWhatWasSeenWhenTheyWereMade) {
    for (int i = 0; i < 5 && !HasFatalFailure(); ++i) {
        switch (random_() % 4) {
        case 0:
            add_layer_by_copy();
            break;
        case 1:
            add_layer_by_fuse_overlay();
            break;
        default:
            add_layer_by_overlay();
        }
    }
    if (!HasFatalFailure()) check_merged();
}
INSTANTIATE_TEST_SUITE_P(Seeds, StackedLayers, testing::Range(1U, 13U));

TEST(Layers, ByFuseOverlayfsAChangedNamePartsFromTheOthersAndIsKept) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "prefix", staging = directory / "staging";
    fs::create_directory(prefix);
    fs::create_directory(staging);
    const auto file = directory.write("tree/file", "x");
    for (const char* name : {"again", "gone", "moved"})
        fs::create_hard_link(file, directory / "tree" / name);
    std::vector<fs::path> images = {directory / "0"};
    ASSERT_TRUE(image::write_tree(directory / "tree", images.front(), {}, 022));
    const auto append = [](const fs::path& to, std::string_view text) {
        std::ofstream(to, std::ios::app) << text;
    };
    {
        auto space = test::good(environments::BuildNamespace::create());
        const auto mounted = space.mount_fuse_overlay("/usr/bin/fuse-overlayfs", images, staging, prefix);
        ASSERT_TRUE(mounted) << to_string(mounted.error());
        const auto seen = space.tree();
        append(seen / "again", "more");
        append(seen / "gone", "lost");
        fs::remove(seen / "gone");
        fs::rename(seen / "moved", seen / "new");
        append(seen / "new", "er");
        fs::create_directory(seen / ".wh.a directory");
        EXPECT_EQ(read_file(seen / "file").value_or(""), "x");
    }
    // Mounted again, like a persistent overlay.
    auto space = test::good(environments::BuildNamespace::create());
    ASSERT_TRUE(space.mount_fuse_overlay("/usr/bin/fuse-overlayfs", images, staging, prefix));
    const auto seen = space.tree();
    EXPECT_EQ(read_file(seen / "again").value_or(""), "xmore");
    append(seen / "again", "!");
    auto changes = test::good(image::changes_in_fuse_overlay(staging / "upper", seen, images, 022));
    EXPECT_EQ(changes.files, (std::vector<std::string>{".wh.a directory", "again", "new", "gone", "moved"}));
    images.push_back(directory / "1");
    ASSERT_TRUE(image::write_changes(changes, images.back(), {}));
    const auto unpacked = directory / "unpacked";
    fs::create_directory(unpacked);
    ASSERT_TRUE(image::unpack(images, unpacked));
    EXPECT_EQ(read_file(unpacked / "file").value_or(""), "x");
    EXPECT_EQ(read_file(unpacked / "again").value_or(""), "xmore!");
    EXPECT_EQ(read_file(unpacked / "new").value_or(""), "xer");
    EXPECT_TRUE(fs::exists(unpacked / ".wh.a directory"));
}

TEST(Layers, NamesThatFuseOverlayfsMisreadsAreFound) {
    const TemporaryDirectory directory;
    directory.write("tree/dir/file", "x");
    const std::vector<fs::path> images = {directory / "0", directory / "1"};
    ASSERT_TRUE(image::write_tree(directory / "tree", images[0], {}, 022));
    ASSERT_TRUE(image::suits_fuse_overlay(std::span(images).first(1)).value_or(false));
    directory.write("upper/dir/.wh.file", "x");
    ASSERT_TRUE(image::write_tree(directory / "upper", images[1], {}, 022));
    EXPECT_FALSE(image::suits_fuse_overlay(images).value_or(true));
}

TEST(BuildNamespace, AFuseOverlayThatDoesNotStartIsAnError) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "prefix", staging = directory / "staging";
    fs::create_directory(prefix);
    fs::create_directory(staging);
    directory.write("tree/file", "x");
    const std::vector<fs::path> images = {directory / "0"};
    ASSERT_TRUE(image::write_tree(directory / "tree", images.front(), {}, 022));
    auto space = test::good(environments::BuildNamespace::create());
    const auto done = test::error_of(space.mount_fuse_overlay("/usr/bin/false", images, staging, prefix));
    EXPECT_EQ(done.what, "cannot start fuse-overlayfs");
    const auto sleeping = directory.write("sleeping", "#!/bin/sh\nexec sleep 1000\n");
    fs::permissions(sleeping, fs::perms::owner_all);
    EXPECT_EQ(test::error_of(space.mount_fuse_overlay(sleeping, images, staging, prefix)).why,
              "it does not answer");
    const auto missing =
        test::error_of(space.mount_fuse_overlay(directory / "none", images, staging, prefix));
    EXPECT_EQ(missing.why, "No such file or directory");
    ASSERT_TRUE(space.mount_fuse_overlay("/usr/bin/fuse-overlayfs", images, staging, prefix))
        << "what failed before is out of the way";
    EXPECT_EQ(read_file(space.tree() / "file").value_or(""), "x");
}

TEST(Layers, AttributesAreShownAndThoseOfOverlaysAreNot) {
    const TemporaryDirectory directory;
    const auto prefix = directory / "prefix", staging = directory / "staging";
    fs::create_directory(prefix);
    fs::create_directory(staging);
    const auto file = directory.write("tree/file", "x");
    directory.write("tree/dir/old", "x");
    ASSERT_EQ(setxattr(file.c_str(), "user.colour", "red", 3, 0), 0);
    std::vector<fs::path> images = {directory / "0"};
    ASSERT_TRUE(image::write_tree(directory / "tree", images.front(), {}, 022));
    auto space = test::good(environments::BuildNamespace::create());
    ASSERT_TRUE(space.mount_overlay(images, staging, prefix));
    const auto seen = space.tree();
    std::string value(16, '\0');
    ASSERT_EQ(getxattr((seen / "file").c_str(), "user.colour", value.data(), value.size()), 3);
    EXPECT_EQ(value.substr(0, 3), "red");
    fs::remove_all(seen / "dir");
    directory.write(fs::path("fresh/new"), "y");
    fs::copy(directory / "fresh", seen / "dir", fs::copy_options::recursive);
    ASSERT_EQ(setxattr((seen / "file").c_str(), "user.colour", "blue", 4, 0), 0);
    auto changes = test::good(image::changes_in_overlay(staging / "upper", images, 022));
    EXPECT_EQ(changes.files, (std::vector<std::string>{"dir", "dir/new", "file"}));
    images.push_back(directory / "1");
    ASSERT_TRUE(image::write_changes(changes, images.back(), {}));

    auto layers = test::good(image::open_layers(images));
    const auto attributes = test::good(layers->xattrs(*layers->find("file")));
    ASSERT_EQ(attributes.size(), 1U);
    EXPECT_EQ(attributes.front().value, "blue");
    EXPECT_TRUE(layers->xattrs(*layers->find("dir"))->empty());
    EXPECT_FALSE(layers->find("dir/old"));
    EXPECT_TRUE(layers->find("dir/new"));
}

} // namespace
} // namespace containerize::runtime
