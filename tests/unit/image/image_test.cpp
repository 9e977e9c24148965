// Images that the writer packs are read correctly by the reader and by the standard tools.
#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "image/reader.h"
#include "image/writer.h"

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace containerize::image {
namespace {

using test::TemporaryDirectory;

std::string text_of(Reader& reader, Reference reference, std::uint64_t size) {
    std::string text;
    // In pieces of irregular size, as page faults request them.
    for (std::uint64_t at = 0; at < size;) {
        const std::size_t piece = 1 + (at * 7919) % 200000;
        std::vector<Slice> slices;
        const auto done = reader.read(reference, at, piece, slices);
        EXPECT_TRUE(done) << done.error();
        if (!done || slices.empty()) break;
        for (const auto& slice : slices) {
            text.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
            at += slice.bytes.size();
        }
    }
    return text;
}

// Recursively compares a directory of the image with one on disk.
void expect_same(Reader& reader, Reference reference, const fs::path& directory) {
    const auto listing = reader.directory(reference);
    ASSERT_TRUE(listing) << directory;
    std::size_t on_disk = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory))
        ++on_disk;
    EXPECT_EQ((*listing)->entries.size(), on_disk) << directory;
    for (const auto& entry : (*listing)->entries) {
        const fs::path path = directory / (*listing)->name(entry);
        struct stat info {};
        ASSERT_EQ(lstat(path.c_str(), &info), 0) << path;
        EXPECT_EQ(reader.lookup(reference, path.filename().string()), entry.inode);
        const auto inode = reader.inode(entry.inode);
        ASSERT_TRUE(inode) << path;
        EXPECT_EQ(inode->mode & S_IFMT, info.st_mode & S_IFMT) << path;
        EXPECT_EQ(inode->mtime, static_cast<std::uint32_t>(info.st_mtime)) << path;
        if (S_ISDIR(info.st_mode)) {
            expect_same(reader, entry.inode, path);
        } else if (S_ISLNK(info.st_mode)) {
            EXPECT_EQ(reader.read_link(entry.inode), fs::read_symlink(path).string());
        } else {
            EXPECT_EQ(inode->nlink, info.st_nlink) << path;
            ASSERT_EQ(inode->size, static_cast<std::uint64_t>(info.st_size)) << path;
            const auto content = read_file(path, std::uint64_t{1} << 30U);
            ASSERT_TRUE(content);
            EXPECT_TRUE(text_of(reader, entry.inode, inode->size) == *content) << path;
        }
    }
}

void write(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
}

std::string random_bytes(std::mt19937& random, std::size_t size, bool compressible) {
    std::string bytes(size, '\0');
    for (auto& byte : bytes)
        byte = static_cast<char>(compressible ? 'a' + random() % 3 : random());
    return bytes;
}

// Names, sizes and shapes that have caused errors in archivers.
void make_tree(const fs::path& root, unsigned seed) {
    std::mt19937 random(seed);
    const std::string names[] = {"plain",    "with space",         "-dash", "ünï", "new\nline",
                                 "\xff\xfe", std::string(255, 'n')};
    const std::size_t sizes[] = {0, 1, 4095, 4096, 131071, 131072, 131073, 262144, 1000000};
    for (const auto& name : names)
        for (const auto size : {sizes[random() % 9], sizes[random() % 9]})
            write(root / name / ("d" + std::to_string(random() % 4)) /
                      (name.substr(0, 200) + std::to_string(size)),
                  random_bytes(random, size, random() % 2 == 0));
    for (int i = 0; i < 700; ++i)
        write(root / "many" / std::to_string(i), std::to_string(i));
    for (int i = 0; i < 50; ++i)
        write(root / "duplicates" / std::to_string(i), std::string(50000, 'x'));
    fs::path deep = root;
    for (int i = 0; i < 60; ++i)
        deep /= "d";
    write(deep / "file", "deep");
    write(root / "zeros", std::string(700000, '\0') + "end");
    fs::create_directories(root / "empty");
    fs::create_symlink(std::string(3000, 't'), root / "long link");
    fs::create_symlink("many/1", root / "link");
    fs::create_hard_link(root / "zeros", root / "hard");
    fs::create_hard_link(root / "zeros", root / "empty/hard too");
    fs::permissions(root / "many/7", fs::perms::owner_read);
}

Result<std::unique_ptr<Reader>> open_image(const fs::path& path, std::uint64_t offset = 0) {
    return Reader::open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path, 1, offset);
}

struct Settings {
    const char* compression;
    std::uint32_t block_size;
    unsigned seed;
};
class Images : public testing::TestWithParam<Settings> {};

TEST_P(Images, ShowWhatWasPacked) {
    const auto& settings = GetParam();
    const TemporaryDirectory directory;
    const auto root = directory / "tree";
    const auto image = directory / "image";
    make_tree(root, settings.seed);
    WriterOptions options;
    options.jobs = 2;
    options.compression = *parse_compression(settings.compression);
    options.block_size = settings.block_size;
    const auto stats = test::good(write_tree(root, image, options, 0));
    EXPECT_EQ(stats.image_bytes, fs::file_size(image));
    auto reader = test::good(open_image(image));
    expect_same(*reader, reader->root(), root);
    // The standard tool must agree.
    const auto unpacked = directory / "unpacked";
    const auto quoted = [](const fs::path& path) { return "'" + path.string() + "'"; };
    ASSERT_EQ(std::system(
                  ("unsquashfs -q -n -d " + quoted(unpacked) + " " + quoted(image) + " >/dev/null").c_str()),
              0);
    EXPECT_EQ(std::system(("diff -r --no-dereference " + quoted(root) + " " + quoted(unpacked)).c_str()), 0);
}
INSTANTIATE_TEST_SUITE_P(Compressions, Images,
                         testing::Values(Settings{"zstd:3", 131072, 1}, Settings{"zstd:1", 4096, 2},
                                         Settings{"lz4", 1048576, 3}, Settings{"none", 131072, 4}));

// Images made by other tools, like base images.
class ForeignImages : public testing::TestWithParam<const char*> {};

void make_foreign_image(const fs::path& root, const fs::path& image, const std::string& options) {
    const std::string command =
        "mksquashfs '" + root.string() + "' '" + image.string() + "' -quiet -no-progress " + options;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

TEST_P(ForeignImages, AreReadWhereverTheyStart) {
    const TemporaryDirectory directory;
    const auto root = directory / "tree";
    make_tree(root, 7);
    const auto image = directory / "image", behind = directory / "behind";
    make_foreign_image(root, image, GetParam());
    const std::uint64_t offset = 300001;
    directory.write("behind", std::string(offset, 'S') + read_file(image, std::uint64_t{1} << 30U).value());
    for (const auto& [file, start] : {std::pair{image, std::uint64_t{0}}, {behind, offset}}) {
        auto reader = test::good(open_image(file, start));
        expect_same(*reader, reader->root(), root);
    }
    EXPECT_FALSE(open_image(behind, offset - 1));
    EXPECT_FALSE(open_image(behind, fs::file_size(behind) + offset));
}

INSTANTIATE_TEST_SUITE_P(All, ForeignImages,
                         testing::Values("-comp gzip", "-comp gzip -b 1M -always-use-fragments",
                                         "-comp xz -b 1M -Xbcj x86 -Xdict-size 100%",
                                         "-comp xz -no-exports -no-fragments", "-comp lz4 -Xhc",
                                         "-comp lz4 -b 4096", "-comp lzma",
                                         "-comp zstd -Xcompression-level 19 -b 1M -no-xattrs",
                                         "-comp zstd -noI -noD -noF",
                                         "-comp gzip -no-sparse -no-duplicates -nopad"));

TEST(Reader, ShowsAttributesOfForeignImages) {
    const TemporaryDirectory directory(
        "/var/tmp"); // /tmp may be in memory, without attributes before Linux 6.6
    const auto root = directory / "tree";
    directory.write("tree/file", "x");
    ASSERT_EQ(setxattr((root / "file").c_str(), "user.comment", "said", 4, 0), 0);
    make_foreign_image(root, directory / "image", "-comp gzip -xattrs");
    auto reader = test::good(open_image(directory / "image"));
    const auto file = test::good(reader->lookup(reader->root(), "file"));
    const auto inode = test::good(reader->inode(file));
    const auto xattrs = test::good(reader->xattrs(inode.xattrs));
    ASSERT_EQ(xattrs.size(), 1U);
    EXPECT_EQ(xattrs.front().name, "user.comment");
    EXPECT_EQ(xattrs.front().value, "said");
}

// The licence of its library is not compatible with ours.
TEST(Reader, NamesTheCompressorThatItDoesNotKnow) {
    const TemporaryDirectory directory;
    directory.write("tree/file", "x");
    make_foreign_image(directory / "tree", directory / "image", "-comp lzo");
    const auto refused = test::error_of(open_image(directory / "image"));
    EXPECT_TRUE(to_string(refused).contains("lzo")) << to_string(refused);
}

TEST(Writer, ThreadsChangeNoByte) {
    const TemporaryDirectory directory;
    make_tree(directory / "tree", 5);
    std::string first;
    for (const unsigned jobs : {1U, 2U, 4U}) {
        const auto image = directory / ("image" + std::to_string(jobs));
        ASSERT_TRUE(write_tree(directory / "tree", image, {.jobs = jobs}, 022));
        const auto content = test::good(read_file(image, std::uint64_t{1} << 30U));
        if (first.empty()) first = content;
        EXPECT_TRUE(first == content) << jobs;
    }
}

TEST(Writer, ModesAreFitForSharing) {
    const TemporaryDirectory directory;
    const auto root = directory / "tree";
    write(root / "file", "x");
    write(root / "program", "x");
    chmod((root / "file").c_str(), 0600);
    chmod((root / "program").c_str(), 06777);
    for (const auto& [umask_bits, file, program] : {std::tuple{mode_t{022}, mode_t{0644}, mode_t{0755}},
                                                    {mode_t{027}, mode_t{0640}, mode_t{0750}},
                                                    {mode_t{077}, mode_t{0600}, mode_t{0700}}}) {
        const auto image = directory / ("image" + std::to_string(umask_bits));
        ASSERT_TRUE(write_tree(root, image, {}, umask_bits));
        auto reader = test::good(open_image(image));
        const auto mode = [&](const char* name) {
            return reader->inode(*reader->lookup(reader->root(), name))->mode & 07777U;
        };
        EXPECT_EQ(mode("file"), file);
        EXPECT_EQ(mode("program"), program);
    }
}

TEST(Writer, DuplicatesAreStoredOnce) {
    const TemporaryDirectory directory;
    std::mt19937 random(9);
    const auto content = random_bytes(random, 300000, false);
    for (int i = 0; i < 40; ++i)
        write(directory / "tree" / std::to_string(i), content);
    const auto stats = test::good(write_tree(directory / "tree", directory / "image", {.jobs = 2}, 022));
    EXPECT_LT(stats.image_bytes, 2 * content.size());
}

TEST(Writer, LaterTimesAreClamped) {
    const TemporaryDirectory directory;
    write(directory / "tree/file", "x");
    WriterOptions options;
    options.source_date_epoch = 1000;
    ASSERT_TRUE(write_tree(directory / "tree", directory / "image", options, 022));
    auto reader = test::good(open_image(directory / "image"));
    EXPECT_EQ(reader->inode(*reader->lookup(reader->root(), "file"))->mtime, 1000U);
}

TEST(Writer, RefusesWhatNoImageCanHold) {
    const TemporaryDirectory directory;
    auto writer = test::good(Writer::create(directory / "image", {}));
    ASSERT_TRUE(writer.begin_file("a", {}));
    ASSERT_TRUE(writer.end_file());
    for (const char* path : {"../x", "a/b", "x//y", "./x", "a"})
        EXPECT_FALSE(writer.begin_file(path, {})) << path;
    EXPECT_FALSE(writer.add_hardlink("b", "missing"));
    EXPECT_FALSE(writer.add_symlink("l", "", {}));
}

TEST(Writer, LeavesNoFileWithoutFinish) {
    const TemporaryDirectory directory;
    {
        auto writer = Writer::create(directory / "image", {});
        ASSERT_TRUE(writer);
    }
    EXPECT_FALSE(fs::exists(directory / "image"));
    EXPECT_EQ(to_string(test::error_of(Writer::create("/nonexistent/image", {}))),
              "/nonexistent/image: cannot create the image: No such file or directory");
}

// Under AddressSanitizer this shows that everything libsquashfs's threads hold is freed.
TEST(Writer, MayBeAbandonedInTheMiddleOfAFile) {
    const TemporaryDirectory directory;
    std::mt19937 random(7);
    std::vector<std::byte> noise(std::size_t{8} << 20U);
    for (auto& byte : noise)
        byte = static_cast<std::byte>(random());
    auto writer = test::good(Writer::create(directory / "image", {.jobs = 2}));
    ASSERT_TRUE(writer.begin_file("a", {}));
    ASSERT_TRUE(writer.append(noise));
}

TEST(Options, CompressorsHaveSquashfssNumbers) {
    for (const auto& [name, compressor] : {std::pair("gzip", Compressor::gzip),
                                           {"xz", Compressor::xz},
                                           {"lz4", Compressor::lz4},
                                           {"zstd", Compressor::zstd}})
        EXPECT_EQ(sqfs_compressor_id_from_name(name), static_cast<int>(compressor)) << name;
}

TEST(Options, AreChecked) {
    for (const char* good : {"zstd", "zstd:1", "zstd:22", "lz4", "none"})
        EXPECT_TRUE(parse_compression(good)) << good;
    for (const char* bad : {"", "zstd:0", "zstd:23", "zstd:", "zstd:x", "gzip", "lz4:1"}) {
        const auto parsed = parse_compression(bad);
        ASSERT_FALSE(parsed) << bad;
        EXPECT_EQ(to_string(parsed.error()),
                  std::string("invalid compression: '") + bad +
                      "'\nGive zstd:LEVEL with a level from 1 to 22, lz4 or none.");
    }
    EXPECT_EQ(parse_block_size("128K"), 131072U);
    EXPECT_EQ(parse_block_size("1M"), 1048576U);
    EXPECT_EQ(parse_block_size("4096"), 4096U);
    for (const char* bad : {"", "100K", "2M", "2048", "K", "-4K", "4K4", "99999999999999999999"})
        EXPECT_FALSE(parse_block_size(bad)) << bad;
}

TEST(Reader, ServesManyThreads) {
    const TemporaryDirectory directory;
    make_tree(directory / "tree", 11);
    ASSERT_TRUE(write_tree(directory / "tree", directory / "image", {.jobs = 2}, 0));
    auto reader = open_image(directory / "image");
    ASSERT_TRUE(reader);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { expect_same(**reader, (*reader)->root(), directory / "tree"); });
}

// Damages bytes all over an image: the reader may return an error, but must not access memory out of bounds,
// which the sanitizers check.
TEST(Reader, SurvivesDamagedImages) {
    const TemporaryDirectory directory;
    const auto root = directory / "tree";
    for (int i = 0; i < 300; ++i)
        write(root / ("d" + std::to_string(i % 7)) / std::to_string(i), std::string(3000, 'a'));
    write(root / "large", std::string(500000, 'b'));
    fs::create_symlink("large", root / "link");
    // Uncompressed, so that the damage reaches every field and does not already fail in the decompressor.
    WriterOptions options;
    options.compression = {.compressor = Compressor::none, .level = 0};
    ASSERT_TRUE(write_tree(root, directory / "image", options, 0));
    const auto good = *read_file(directory / "image", std::uint64_t{1} << 30U);
    const std::size_t tables = good.size() - std::min<std::size_t>(good.size(), 24000);
    std::mt19937 random(3);
    for (int round = 0; round < 400; ++round) {
        std::string bad = good;
        for (int k = 0; k < 4; ++k) {
            const bool in_superblock = random() % 4 == 0;
            const std::size_t at = in_superblock ? random() % 96 : tables + random() % (bad.size() - tables);
            bad[at] = static_cast<char>(random());
        }
        const auto path = directory / "bad";
        fs::remove(path);
        std::ofstream(path, std::ios::binary) << bad;
        auto reader = open_image(path);
        if (!reader) continue;
        std::vector<Reference> pending = {(*reader)->root()};
        for (std::size_t visited = 0; !pending.empty() && visited < 2000; ++visited) {
            const Reference reference = pending.back();
            pending.pop_back();
            const auto inode = (*reader)->inode(reference);
            if (!inode) continue;
            std::vector<Slice> slices;
            [[maybe_unused]] const auto read = (*reader)->read(reference, inode->size / 2, 200000, slices);
            [[maybe_unused]] const auto target = (*reader)->read_link(reference);
            if (const auto listing = (*reader)->directory(reference))
                for (const auto& entry : (*listing)->entries)
                    pending.push_back(entry.inode);
        }
    }
}

TEST(Reader, RefusesWhatIsNoImage) {
    const TemporaryDirectory directory;
    write(directory / "short", "hsqs");
    write(directory / "other", std::string(5000, 'x'));
    EXPECT_TRUE(
        to_string(open_image(directory / "short").error()).contains("shorter than a squashfs header"));
    EXPECT_TRUE(to_string(open_image(directory / "other").error()).contains("it is not a squashfs image"));
}

} // namespace
} // namespace containerize::image
