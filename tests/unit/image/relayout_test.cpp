// Layers merged into one image, with their blocks copied as they are.
#include "../good.h"
#include "../random_trees.h"
#include "../temporary.h"
#include "image/relayout.h"
#include "image/unpack.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::image {
namespace {

using test::good;
using test::TemporaryDirectory;

/// Text that compresses to about half its size, differently at each level.
std::string text_of(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < size)
        text += std::to_string(random() % 5000) + " ";
    text.resize(size);
    return text;
}

/// An image of these files, the next layer in `images`.
void add_layer(const TemporaryDirectory& work, const std::map<std::string, std::string>& files,
               std::vector<fs::path>& images, const WriterOptions& options = {}) {
    const auto name = "layer" + std::to_string(images.size());
    for (const auto& [path, content] : files)
        work.write(fs::path(name + ".tree") / path, content);
    images.push_back(work / name);
    good(write_tree(work / (name + ".tree"), images.back(), options, 022));
}

std::map<std::string, std::string> files_in(const TemporaryDirectory& work, const fs::path& image) {
    const auto tree = work / (image.filename().string() + ".unpacked");
    fs::create_directory(tree);
    good(image::unpack({&image, 1}, tree));
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(tree))
        if (entry.is_regular_file())
            files[entry.path().lexically_relative(tree)] = good(read_file(entry.path()));
    return files;
}

StoredFile stored(Layers& layers, const std::string& path) {
    return *layers.stored_file(good(layers.find(path)));
}

constexpr WriterOptions smaller = {.compression = {.compressor = Compressor::zstd, .level = 19}};

TEST(MergedLayers, KeepTheBlocksOfTheirFiles) {
    const TemporaryDirectory work;
    std::vector<fs::path> images;
    add_layer(work, {{"low", text_of(3'000'000, 1)}, {"replaced", text_of(2'000'000, 2)}}, images, smaller);
    add_layer(work, {{"high", text_of(500'000, 3)}, {"replaced", "new"}}, images, smaller);
    const auto layers = good(open_layers(images));
    const auto stats = good(write_merged(*layers, work / "merged", {}));
    const std::vector merged = {work / "merged"};
    const auto image = good(open_layers(merged));
    for (const char* path : {"low", "high"})
        EXPECT_EQ(stored(*image, path).blocks, stored(*layers, path).blocks) << path;
    EXPECT_EQ(files_in(work, merged[0]),
              (std::map<std::string, std::string>{
                  {"low", text_of(3'000'000, 1)}, {"high", text_of(500'000, 3)}, {"replaced", "new"}}));
    EXPECT_EQ(stats.input_bytes, 3'500'003U);
    // What is replaced is not in it.
    EXPECT_LT(stats.image_bytes, fs::file_size(images[0]) + fs::file_size(images[1]) -
                                     stored(*good(open_layers({&images[0], 1})), "replaced").stored());
}

TEST(MergedLayers, AreCompressedAnewOnRequest) {
    const TemporaryDirectory work;
    std::vector<fs::path> images;
    add_layer(work, {{"file", text_of(1'000'000, 1)}}, images);
    const auto layers = good(open_layers(images));
    const auto copied = good(write_merged(*layers, work / "copied", smaller));
    const auto anew = good(write_merged(*layers, work / "anew", smaller, {.compress_anew = true}));
    EXPECT_LT(anew.image_bytes, copied.image_bytes);
    good(write_tree(work / "layer0.tree", work / "afresh", smaller, 022));
    EXPECT_EQ(good(read_file(work / "anew")), good(read_file(work / "afresh")));
}

TEST(MergedLayers, WithOtherSettingsAreCompressedAnew) {
    const TemporaryDirectory work;
    std::vector<fs::path> images;
    add_layer(work, {{"a", text_of(400'000, 1)}}, images,
              {.compression = {.compressor = Compressor::lz4, .level = 0}});
    add_layer(work, {{"b", text_of(400'000, 2)}}, images, {.block_size = 64U << 10U});
    add_layer(work, {{"c", text_of(400'000, 3)}}, images);
    good(write_merged(*good(open_layers(images)), work / "merged", {}));
    EXPECT_EQ(files_in(work, work / "merged"),
              (std::map<std::string, std::string>{
                  {"a", text_of(400'000, 1)}, {"b", text_of(400'000, 2)}, {"c", text_of(400'000, 3)}}));
}

/// The number of blocks in which these small files are.
std::size_t fragments_of(const fs::path& image, const std::map<std::string, std::string>& files) {
    const auto layers = good(open_layers({&image, 1}));
    std::set<std::uint32_t> fragments;
    for (const auto& [path, content] : files)
        fragments.insert(stored(*layers, path).fragment);
    return fragments.size();
}

TEST(MergedLayers, DoNotKeepBlocksThatAreMostlyUnused) {
    const TemporaryDirectory work;
    std::vector<fs::path> images;
    std::map<std::string, std::string> files;
    for (unsigned i = 0; i < 10; ++i) {
        const auto name = "small" + std::to_string(i);
        files[name] = text_of(3000, i);
        add_layer(work, {{name, files[name]}, {"replaced", text_of(100'000, 100 + i)}}, images);
    }
    files["replaced"] = text_of(100'000, 109);
    good(write_merged(*good(open_layers(images)), work / "merged", {}));
    EXPECT_EQ(files_in(work, work / "merged"), files);
    files.erase("replaced");
    // The last layer's block is copied.
    EXPECT_EQ(fragments_of(work / "merged", files), 2U);
}

TEST(MergedLayers, CopyABlockOnceHoweverManyFilesAreFirst) {
    const TemporaryDirectory work;
    std::vector<fs::path> images;
    std::map<std::string, std::string> files;
    for (unsigned i = 0; i < 6; ++i)
        files["large" + std::to_string(i)] = text_of(4'000'000 + std::size_t{20'000} * i, i);
    files["twin"] = files["large3"]; // stored once
    add_layer(work, files, images);
    const auto layers = good(open_layers(images));
    MergeOptions how;
    for (const char* path : {"large4", "large2", "twin", "large3"})
        how.first.push_back({.path = path, .reference = good(layers->find(path)), .blocks = {}});
    const auto stats = good(write_merged(*layers, work / "merged", {}, how));
    EXPECT_EQ(files_in(work, work / "merged"), files);
    EXPECT_LT(stats.image_bytes, fs::file_size(images[0]) + 8192);
    const std::vector merged = {work / "merged"};
    const auto image = good(open_layers(merged));
    const auto start = [&](const char* path) { return stored(*image, path).start; };
    EXPECT_LT(start("large4"), start("large2"));
    EXPECT_LT(start("large2"), start("large3"));
    EXPECT_LT(start("large3"), start("large0"));
    EXPECT_EQ(start("large3"), start("twin"));
}

TEST(CopiedBlocks, FindsTheRangeThatContainsAll) {
    CopiedBlocks blocks;
    blocks.add({.from = 100, .to = 1000, .size = 50});
    blocks.add({.from = 200, .to = 2000, .size = 50});
    EXPECT_EQ(blocks.find(210, 40)->position(210), 2010U);
    EXPECT_EQ(blocks.find(210, 41), nullptr);
    EXPECT_EQ(blocks.find(90, 10), nullptr);
    // A larger copy takes the place of those within it.
    blocks.add({.from = 90, .to = 3000, .size = 120});
    EXPECT_EQ(blocks.ranges.size(), 2U);
    EXPECT_EQ(blocks.find(100, 50)->position(100), 3010U);
    EXPECT_EQ(blocks.find(205, 1)->position(205), 2005U);
}

} // namespace
} // namespace containerize::image
