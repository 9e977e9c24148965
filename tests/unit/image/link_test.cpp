// Files linked from one image into another without being decompressed.
#include "../good.h"
#include "../random_trees.h"
#include "../temporary.h"
#include "image/listing.h"
#include "image/writer.h"
#include "util/process.h"

#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::image {
namespace {

using test::good;
using test::TemporaryDirectory;

std::unique_ptr<Reader> reader_of(const fs::path& path) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return good(Reader::open(std::move(file), path));
}

/// Adds all of `from` below `to`, but for what is called `without`.
void link_all(Writer& writer, Reader& from, const std::string& to, const std::string& without = {}) {
    auto entries = good(list_entries(from));
    std::erase_if(entries, [&](const auto& entry) { return entry.path == without; });
    std::vector<StoredFile> files;
    for (const auto& entry : entries)
        if (S_ISREG(entry.inode.mode)) files.push_back(*from.stored_file(entry.reference));
    CopiedBlocks blocks;
    good(writer.copy_blocks(from, files, blocks));
    std::map<std::uint64_t, std::string> names;
    for (const auto& entry : entries) {
        const auto path = to + "/" + entry.path;
        const Attributes attributes{.mode = entry.inode.mode & 07777U, .mtime = entry.inode.mtime};
        if (S_ISDIR(entry.inode.mode)) {
            good(writer.add_directory(path, attributes));
        } else if (S_ISLNK(entry.inode.mode)) {
            good(writer.add_symlink(path, *from.read_link(entry.reference), attributes));
        } else if (const auto [name, is_new] = names.emplace(entry.inode.number, path); !is_new) {
            good(writer.add_hardlink(path, name->second));
        } else {
            good(writer.link_file(path, attributes, *from.stored_file(entry.reference), blocks));
        }
    }
}

void unpack(const fs::path& image, const fs::path& directory) {
    Command command{.argv = {"unsquashfs", "-no-progress", "-d", directory.string(), image.string()}};
    const auto done = good(run(command));
    EXPECT_TRUE(done.ok()) << done.output;
}

/// The same in each run.
std::mt19937 numbers(unsigned seed) {
    return std::mt19937(seed);
}

class LinkedImages : public testing::TestWithParam<std::string> {};

TEST_P(LinkedImages, HaveTheFilesOfAllTheirPackages) {
    const TemporaryDirectory work;
    auto random = numbers(7);
    const WriterOptions options{.compression = good(parse_compression(GetParam())), .jobs = 2};
    std::map<std::string, std::string> expected;
    auto writer = good(Writer::create(work / "linked", options));
    for (const std::string name : {"a", "b", "c"}) {
        const auto tree = work / ("tree-" + name);
        test::fill(random, tree, 3);
        // A hole, whole blocks only, and an end that shares a block with other files.
        test::write(random, tree / "hole", std::string(1'000'000, '\0') + "end");
        test::write(random, tree / "blocks", std::string(256U << 10U, 'x'));
        const auto image = work / ("image-" + name);
        good(write_tree(tree, image, options, 022));
        for (const auto& [path, text] : test::listing_of(tree))
            expected[name + "/" + path] = text;
        // What is compressed here lies between the copied blocks.
        good(writer.begin_file("between-" + name, {.mode = 0600, .mtime = 1}));
        good(writer.append(std::as_bytes(std::span(name))));
        good(writer.end_file());
        auto from = reader_of(image);
        link_all(writer, *from, name);
        if (name == "b") good(writer.checkpoint());
    }
    writer.remove("c/hole");
    const auto stats = good(writer.finish());
    unpack(work / "linked", work / "unpacked");
    auto found = test::listing_of(work / "unpacked");
    expected.erase("c/hole");
    for (const std::string name : {"a", "b", "c"}) {
        EXPECT_TRUE(found["between-" + name].ends_with(" " + name));
        found.erase("between-" + name);
        found.erase(name);
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(stats.image_bytes % 4096, 0U);
}

TEST(LinkedImages, CopyOnlyTheBlocksOfTheirFiles) {
    const TemporaryDirectory work;
    auto random = numbers(3);
    fs::create_directory(work / "tree");
    std::string noise(1U << 20U, ' ');
    std::ranges::generate(noise, [&] { return static_cast<char>(random()); });
    for (const char* name : {"a", "b", "c"})
        test::write(random, work / "tree" / name, noise + name); // its end is in a fragment
    std::ranges::reverse(noise);
    test::write(random, work / "tree/unwanted", noise);
    const WriterOptions options;
    good(write_tree(work / "tree", work / "image", options, 022));
    const auto from = reader_of(work / "image");
    auto writer = good(Writer::create(work / "linked", options));
    link_all(writer, *from, "to", "unwanted");
    const auto stats = good(writer.finish());
    EXPECT_LT(stats.image_bytes, fs::file_size(work / "image") - noise.size() + 8192);
    unpack(work / "linked", work / "unpacked");
    for (const char* name : {"a", "b", "c"})
        EXPECT_EQ(good(read_file(work / "unpacked/to" / name)), good(read_file(work / "tree" / name)));
}

TEST(LinkedImages, AreKeptWhenADuplicateIsWrittenAfterThem) {
    const TemporaryDirectory work;
    auto random = numbers(9);
    const auto noise = [&random] {
        std::string content(300'000, '\0');
        std::ranges::generate(content, [&random] { return static_cast<char>(random()); });
        return content;
    };
    const auto linked = noise(), twice = noise();
    work.write(fs::path("tree") / "linked", linked);
    good(write_tree(work / "tree", work / "package", {}, 022));
    auto from = reader_of(work / "package");
    auto writer = good(Writer::create(work / "image", {}));
    const auto add = [&](const std::string& name) {
        good(writer.begin_file(name, {}));
        good(writer.append(std::as_bytes(std::span(twice))));
        good(writer.end_file());
    };
    add("first");
    link_all(writer, *from, "package");
    add("second");
    good(writer.finish());
    const auto image = reader_of(work / "image");
    std::map<std::string, std::string> found;
    for (const auto& entry : good(list_entries(*image)))
        if (S_ISREG(entry.inode.mode)) found[entry.path] = good(content_of(*image, entry, 1U << 20U));
    EXPECT_TRUE((found == std::map<std::string, std::string>{
                              {"first", twice}, {"package/linked", linked}, {"second", twice}}));
    EXPECT_LT(fs::file_size(work / "image"), 700'000U) << "duplicates are still stored once";
}

INSTANTIATE_TEST_SUITE_P(Compressors, LinkedImages, testing::Values("zstd:3", "lz4", "none"));

TEST(LinkedImages, MustHaveTheSameSettings) {
    const TemporaryDirectory work;
    fs::create_directory(work / "tree");
    good(write_tree(work / "tree", work / "zstd", {}, 022));
    auto writer =
        good(Writer::create(work / "lz4", {.compression = {.compressor = Compressor::lz4, .level = 0}}));
    const auto from = reader_of(work / "zstd");
    CopiedBlocks blocks;
    EXPECT_FALSE(writer.copy_blocks(*from, {}, blocks));
    auto small = good(Writer::create(work / "small", {.block_size = 4096}));
    EXPECT_FALSE(small.copy_blocks(*from, {}, blocks));
}

} // namespace
} // namespace containerize::image
