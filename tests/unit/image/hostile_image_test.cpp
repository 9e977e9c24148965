// Hostile images: the cost of reading them is bounded, and everything invalid is an error.
#include "../../lib/squashfs_image.h"
#include "../good.h"
#include "../temporary.h"
#include "image/changes.h"
#include "image/layers.h"
#include "image/metadata.h"
#include "image/relayout.h"
#include "image/unpack.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace containerize::image {
namespace {

using test::add_directory;
using test::add_file;
using test::add_inode;
using test::append;
using test::next_inode;
using test::SquashfsEntry;
using test::SquashfsImage;
using test::TemporaryDirectory;

class HostileImage : public testing::Test {
protected:
    fs::path write(const SquashfsImage& image, const std::string& name = "image") {
        return directory_.write(name, to_bytes(image));
    }
    Result<std::unique_ptr<Layers>> open(const SquashfsImage& image) {
        return open_layers(std::vector{write(image)});
    }
    TemporaryDirectory directory_;
};

void add_xattr(std::string& table, const std::string& name, const std::string& value) {
    append(table, std::uint16_t{0}); // "user."
    append(table, static_cast<std::uint16_t>(name.size()));
    table += name;
    append(table, static_cast<std::uint32_t>(value.size()));
    table += value;
}

/// An attribute whose value is elsewhere, at `place` of the table.
void add_xattr_elsewhere(std::string& table, const std::string& name, std::uint64_t place) {
    append(table, std::uint16_t{0x100});
    append(table, static_cast<std::uint16_t>(name.size()));
    table += name;
    append(table, std::uint32_t{8});
    append(table, place);
}

void add_xattr_set(SquashfsImage& image, std::uint64_t place, std::uint32_t count) {
    sqfs_xattr_id_t set{};
    set.xattr = place;
    set.count = count;
    append(image.xattr_sets, set);
}

/// A root with a file whose only fragment is the data.
SquashfsImage image_of_a_file(const std::string& content) {
    SquashfsImage image;
    image.data = content;
    sqfs_fragment_t fragment{};
    fragment.start_offset = SquashfsImage::data_start;
    fragment.size = static_cast<sqfs_u32>(1U << 24U | content.size());
    append(image.fragments, fragment);
    const auto file = add_file(image, static_cast<std::uint32_t>(content.size()), 0);
    image.root = add_directory(image, {{"file", file, SQFS_INODE_FILE}});
    return image;
}

std::expected<std::string, int> read_file_of(Layers& layers, const std::string& path) {
    const auto reference = TRY(layers.find(path));
    std::vector<Slice> slices;
    if (const auto done = layers.read(reference, 0, 1U << 20U, slices); !done)
        return std::unexpected(done.error());
    std::string content;
    for (const auto& slice : slices)
        content.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
    return content;
}

TEST_F(HostileImage, ThatIsWholeIsRead) {
    const auto layers = test::good(open(image_of_a_file("content")));
    EXPECT_EQ(read_file_of(*layers, "file"), "content");
}

TEST_F(HostileImage, OfACompressorThatThereIsNotIsRefused) {
    for (const std::uint16_t number : {std::uint16_t{0}, std::uint16_t{7}, std::uint16_t{53253}}) {
        auto bytes = to_bytes(image_of_a_file("content"));
        std::memcpy(&bytes[offsetof(sqfs_super_t, compression_id)], &number, sizeof number);
        const auto layers = open_layers(std::vector{directory_.write("image", bytes)});
        ASSERT_FALSE(layers) << number;
        EXPECT_TRUE(to_string(layers.error())
                        .contains("number " + std::to_string(number) + ", which is not supported"))
            << to_string(layers.error());
    }
}

TEST_F(HostileImage, TablesOfMoreThanFourGigabytesAreRefused) {
    constexpr std::uint64_t size = 5ULL << 30U; // sparse, except for the first page
    auto bytes = to_bytes(image_of_a_file("content"));
    sqfs_super_t super;
    std::memcpy(&super, bytes.data(), sizeof super);
    super.directory_table_start = size - 100;
    super.id_table_start = size - 50;
    super.bytes_used = size;
    std::memcpy(bytes.data(), &super, sizeof super);
    const auto path = directory_.write("image", bytes);
    ASSERT_EQ(truncate(path.c_str(), size), 0);
    const auto refused = test::error_of(open_layers(std::vector{path}));
    EXPECT_TRUE(to_string(refused).contains("its tables are larger than 1 GiB")) << to_string(refused);
}

TEST(HostileMetadata, HasABoundedNumberOfBlocks) {
    sqfs_super_t super{};
    super.compression_id = SQFS_COMP_ZSTD;
    super.block_size = 131072;
    auto decompressor = test::good(Decompressor::create(super));
    const auto table_of = [&](std::size_t blocks) {
        std::vector<std::byte> raw;
        for (std::size_t i = 0; i < blocks; ++i)
            for (const unsigned byte : {0x01U, 0x80U, 0x2AU}) // one byte, uncompressed
                raw.push_back(static_cast<std::byte>(byte));
        return MetadataTable::create(std::move(raw), *decompressor);
    };
    auto largest = test::good(table_of(most_metadata_blocks));
    EXPECT_TRUE(largest->at(3 * (most_metadata_blocks - 1), 0)->read<char>());
    EXPECT_FALSE(largest->at(1, 0));
    EXPECT_FALSE(table_of(most_metadata_blocks + 1));
}

TEST_F(HostileImage, AnIndexThatNamesABlockTwiceIsRefused) {
    auto image = image_of_a_file("content");
    sqfs_fragment_t fragment{};
    while (image.fragments.size() < 3 * 8192)
        append(image.fragments, fragment);
    auto bytes = to_bytes(image);
    sqfs_super_t super;
    std::memcpy(&super, bytes.data(), sizeof super);
    ASSERT_TRUE(open_layers(std::vector{directory_.write("whole", bytes)}));
    std::memcpy(&bytes[super.fragment_table_start + 8], &bytes[super.fragment_table_start], 8);
    EXPECT_FALSE(open_layers(std::vector{directory_.write("bad", bytes)}));
}

TEST_F(HostileImage, AFragmentOfSizeZeroIsAnErrorWhileAProfileIsFollowed) {
    auto image = image_of_a_file("content");
    sqfs_fragment_t empty{};
    empty.start_offset = SquashfsImage::data_start;
    append(image.fragments, empty);
    const auto file = add_file(image, 3, 1);
    image.root = add_directory(image, {{"empty", file, SQFS_INODE_FILE}});
    auto layers = test::good(open(image));
    EXPECT_EQ(read_file_of(*layers, "empty"), std::unexpected(EIO));
    layers->prefetch({{.image = {}, .blocks = {{SquashfsImage::data_start, 1U << 24U | 7U}}}},
                     {.shape = {}, .idle_core = {}, .memory_left = {}});
    EXPECT_EQ(read_file_of(*layers, "empty"), std::unexpected(EIO));
}

TEST_F(HostileImage, AFragmentThatWrapsIsAnErrorWhileAProfileIsFollowed) {
    auto image = image_of_a_file("content");
    sqfs_fragment_t last{};
    last.start_offset = std::numeric_limits<std::uint64_t>::max() - 9;
    last.size = 100;
    append(image.fragments, last);
    const auto file = add_file(image, 3, 1);
    image.root = add_directory(image, {{"wraps", file, SQFS_INODE_FILE}});
    auto layers = test::good(open(image));
    layers->prefetch({{.image = {}, .blocks = {{SquashfsImage::data_start, 1U << 24U | 7U}}}},
                     {.shape = {}, .idle_core = {}, .memory_left = {}});
    EXPECT_EQ(read_file_of(*layers, "wraps"), std::unexpected(EIO));
}

// An image of four kilobytes in which all attributes share one large value.
TEST_F(HostileImage, ExtendedAttributesAreBounded) {
    constexpr std::uint32_t most_values = 16;
    SquashfsImage image;
    image.compress_tables = true;
    const std::string value(64U << 10U, 'v');
    for (std::uint32_t i = 0; i < 300; ++i)
        add_xattr_elsewhere(image.xattrs, "a", 0x1000);
    ASSERT_LT(image.xattrs.size(), 0x2000U);
    const auto set_of = [&](std::uint32_t count) {
        auto one = image;
        // The value starts in the first block, at a known offset.
        one.xattrs.resize(0x1000);
        append(one.xattrs, static_cast<std::uint32_t>(value.size()));
        one.xattrs += value;
        add_xattr_set(one, 0, count);
        one.root = add_directory(one, {}, 0);
        EXPECT_LT(to_bytes(one).size(), 4096U);
        return one;
    };
    auto layers = open(set_of(most_values));
    ASSERT_TRUE(layers) << to_string(layers.error());
    const auto xattrs = test::good((*layers)->xattrs((*layers)->root()));
    EXPECT_EQ(xattrs.size(), most_values);
    EXPECT_EQ(xattrs.front().value, value);
    layers = open(set_of(most_values + 1));
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_EQ((*layers)->xattrs((*layers)->root()).error(), EIO);
}

TEST_F(HostileImage, NamesOfExtendedAttributesAreBounded) {
    const auto set_of = [&](std::uint32_t count) {
        SquashfsImage image;
        // In the list of listxattr(), with "user." and a NUL, each takes 4 KiB.
        for (std::uint32_t i = 0; i < count; ++i)
            add_xattr(image.xattrs, std::string(4090, 'n'), {});
        add_xattr_set(image, 0, count);
        image.root = add_directory(image, {}, 0);
        return image;
    };
    auto layers = open(set_of(16));
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_TRUE((*layers)->xattrs((*layers)->root()));
    layers = open(set_of(17));
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_EQ((*layers)->xattrs((*layers)->root()).error(), EIO);
}

// A small image: its tables consist of names that hardly differ, and of holes.
TEST_F(HostileImage, ListingsAreBounded) {
    SquashfsImage image;
    image.compress_tables = true;
    std::vector<SquashfsEntry> entries;
    const auto listing_size = [&entries] { return entries.size() * (sizeof(sqfs_dir_header_t) + 8 + 255); };
    const auto add_entry = [&entries] {
        const auto number = std::to_string(10'000'000 + entries.size());
        entries.push_back({std::string(255 - number.size(), 'n') + number, 0, SQFS_INODE_DIR});
    };
    while (listing_size() < largest_listing)
        add_entry();
    image.root = add_directory(image, entries);
    auto layers = open(image);
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_EQ((*layers)->find("any").error(), EIO);

    entries.resize(entries.size() - 1);
    image.inodes.clear();
    image.listings.clear();
    image.root = add_directory(image, entries);
    layers = open(image);
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_TRUE((*layers)->find(entries.front().name));
}

TEST_F(HostileImage, BlocksOfAFileAreBounded) {
    constexpr std::uint64_t most = 1U << 23U;
    const auto with_blocks = [](std::uint64_t count) {
        SquashfsImage image;
        image.compress_tables = true;
        image.root = add_directory(
            image, {{"holes", sizeof(sqfs_inode_t) + sizeof(sqfs_inode_dir_ext_t), SQFS_INODE_FILE}});
        sqfs_inode_file_ext_t file{};
        file.file_size = count << image.block_log;
        file.fragment_idx = Inode::no_fragment;
        file.xattr_idx = Inode::no_xattrs;
        add_inode(image, SQFS_INODE_EXT_FILE, file);
        image.inodes.append(count * sizeof(std::uint32_t), '\0');
        return image;
    };
    auto layers = open(with_blocks(most));
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_EQ(read_file_of(**layers, "holes")->size(), 1U << 20U);
    layers = open(with_blocks(most + 1));
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_EQ(read_file_of(**layers, "holes"), std::unexpected(EIO));
}

// Values are not needed to know whether there are attributes to show.
TEST_F(HostileImage, IsOpenedWithoutTheValuesOfExtendedAttributes) {
    SquashfsImage image;
    add_xattr_elsewhere(image.xattrs, "overlay.opaque", 0x7FFF0000);
    add_xattr_set(image, 0, 1);
    image.root = add_directory(image, {}, 0);
    auto layers = open(image);
    ASSERT_TRUE(layers) << to_string(layers.error());
    EXPECT_FALSE((*layers)->has_xattrs());
    add_xattr(image.xattrs, "mine", "x");
    layers = open(image);
    ASSERT_TRUE(layers);
    EXPECT_TRUE((*layers)->has_xattrs());
}

TEST_F(HostileImage, ADirectoryWithANameTwiceIsAnError) {
    SquashfsImage image;
    const auto file = add_file(image, 0, 0xFFFFFFFF);
    image.root = add_directory(image, {{"a", file, SQFS_INODE_FILE}, {"a", file, SQFS_INODE_FILE}});
    auto layers = test::good(open(image));
    EXPECT_EQ(layers->directory(layers->root()).error(), EIO);
}

class HostileTree : public HostileImage, public testing::WithParamInterface<const char*> {
protected:
    static SquashfsImage image() {
        SquashfsImage image;
        const std::string kind = GetParam();
        if (kind == "holds itself") {
            const auto self = next_inode(image);
            image.root = add_directory(image, {{"a", self, SQFS_INODE_DIR}, {"b", self, SQFS_INODE_DIR}});
        } else { // two names in each level, so the number of paths is a power of two
            image.root = add_directory(image, {});
            for (int level = 0; level < 60; ++level)
                image.root = add_directory(
                    image, {{"a", image.root, SQFS_INODE_DIR}, {"b", image.root, SQFS_INODE_DIR}});
        }
        return image;
    }
};

TEST_P(HostileTree, IsNotUnpacked) {
    fs::create_directory(directory_ / "target");
    EXPECT_EQ(to_string(test::error_of(unpack(std::vector{write(image())}, directory_ / "target"))),
              (directory_ / "image").string() + ": cannot read the image: Input/output error");
}

TEST_P(HostileTree, IsNotMerged) {
    auto layers = test::good(open(image()));
    EXPECT_FALSE(write_merged(*layers, directory_ / "merged", {}));
    EXPECT_FALSE(fs::exists(directory_ / "merged"));
}

TEST_P(HostileTree, HasNoRecordedFiles) {
    auto layers = test::good(open(image()));
    EXPECT_FALSE(recorded_files(*layers, {Profile{}}));
}

TEST_P(HostileTree, DoesNotSuitAnOverlay) {
    EXPECT_FALSE(suits_fuse_overlay(std::vector{write(image())}));
}

TEST_P(HostileTree, OverAnotherIsOpened) {
    const std::vector images = {write(image(), "lower"), write(image(), "upper")};
    auto layers = test::good(open_layers(images));
    EXPECT_TRUE(layers->find("a/a/b"));
}

INSTANTIATE_TEST_SUITE_P(Trees, HostileTree,
                         testing::Values("holds itself", "has directories in many places"),
                         [](const auto& tree) {
                             std::string name = tree.param;
                             std::ranges::replace(name, ' ', '_');
                             return name;
                         });

} // namespace
} // namespace containerize::image
