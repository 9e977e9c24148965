// Whole trees, packed and then unpacked by the standard tool, and trees that must be refused.
#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/metadata.h"
#include "image/writer.h"
#include "util/process.h"

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace containerize::image {
namespace {

using test::TemporaryDirectory;
using Random = std::mt19937;

/// While one exists, allocations of this thread may leak: libsquashfs 1.2.0 does not free blocks that wait
/// for a worker when it is destroyed in the middle of an image. Compressing them first, only to free them,
/// would make a user who pressed Ctrl-C wait.
struct AbandonsBlocks {
#ifdef __SANITIZE_ADDRESS__
    __lsan::ScopedDisabler disabler;
#endif
    AbandonsBlocks() {} // not trivial, which avoids a warning about an unused variable
};

std::string content_of(const fs::path& path) {
    return read_file(path, std::uint64_t{1} << 30U).value_or("unreadable: " + path.string());
}

std::string random_name(Random& random) {
    static const std::vector<std::string> parts = {"a", "B",    "-",  "--x=",     " ",         "\n", "\t",
                                                   "'", "\"",   "\\", "$(x)",     "*",         "ü",  "日",
                                                   "🐍", "\xff", ".h", "\x01\x7f", "e\xcc\x81", "é",  "%s"};
    std::string name;
    for (auto count = 1 + random() % 6; count > 0; --count)
        name += parts[random() % parts.size()];
    return name + std::to_string(random() % 10000); // never "." nor ".."
}

std::string random_content(Random& random, std::uint32_t block) {
    const std::size_t sizes[] = {0, 1, 100, block - 1, block, block + 1, 3 * block, 3 * block + 5000};
    std::string content(sizes[random() % std::size(sizes)], '\0');
    const auto kind = random() % 4; // zeros, text, noise, or zeros with a little noise at the end
    if (kind == 1) std::ranges::generate(content, [&] { return static_cast<char>('a' + random() % 4); });
    if (kind == 2) std::ranges::generate(content, [&] { return static_cast<char>(random()); });
    if (kind == 3 && !content.empty()) content.back() = static_cast<char>(random());
    return content;
}

void set_random_xattrs(Random& random, const fs::path& path) {
    for (auto count = random() % 3; count > 0; --count) {
        const auto name = "user.n" + std::to_string(random() % 5);
        const std::string value(random() % 300, static_cast<char>(random()));
        const int done = setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0);
        // Some filesystems have no attributes.
        ASSERT_TRUE(done == 0 || errno == ENOTSUP) << path;
    }
}

void set_random_time(Random& random, const fs::path& path) {
    const timespec time{.tv_sec = static_cast<time_t>(random() % 0x7FFFFFFF), .tv_nsec = 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

void fill(Random& random, const fs::path& directory, unsigned depth, std::uint32_t block,
          std::vector<fs::path>& files) {
    fs::create_directories(directory);
    for (auto count = random() % 12; count > 0; --count) {
        const auto path = directory / random_name(random);
        if (fs::exists(fs::symlink_status(path))) continue;
        const auto kind = random() % 10;
        if (kind < 2 && depth > 0) {
            fill(random, path, depth - 1, block, files);
            continue;
        }
        if (kind == 2) {
            fs::create_symlink(std::string(1 + random() % 4000, 's'), path);
        } else if (kind == 3 && !files.empty()) {
            fs::create_hard_link(files[random() % files.size()], path);
            continue;
        } else {
            std::ofstream(path, std::ios::binary) << random_content(random, block);
            const mode_t modes[] = {0400, 0600, 0644, 0777, 0700, 0555, 06755};
            const mode_t mode = modes[random() % std::size(modes)];
            // A user's unsquashfs cannot set attributes of a file without write permission.
            if ((mode & 0200U) != 0) set_random_xattrs(random, path);
            chmod(path.c_str(), mode);
            files.push_back(path);
        }
        set_random_time(random, path);
    }
    set_random_xattrs(random, directory);
    chmod(directory.c_str(), random() % 2 == 0 ? 0700 : 01775);
    set_random_time(random, directory); // last, because creating entries changes it
}

std::map<std::string, std::string> xattrs_of(const fs::path& path) {
    std::map<std::string, std::string> found;
    char names[4096];
    const auto size = llistxattr(path.c_str(), names, sizeof names);
    for (const char* name = names; name < names + std::max<ssize_t>(size, 0); name += std::strlen(name) + 1) {
        char value[4096];
        const auto length = lgetxattr(path.c_str(), name, value, sizeof value);
        if (std::string_view(name).starts_with("user."))
            found[name] = std::string(value, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    }
    return found;
}

std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory))
        names.insert(entry.path().filename().string());
    return names;
}

mode_t shared_mode(const struct stat& info) {
    if (S_ISLNK(info.st_mode)) return info.st_mode;
    const bool runs = S_ISDIR(info.st_mode) || (info.st_mode & 0111U) != 0;
    return (info.st_mode & (S_IFMT | 0200U)) | 0444U | (runs ? 0111U : 0U);
}

/// Everything that an image keeps; `inodes` sees that files are one inode there where they are one here.
void expect_same(const fs::path& source, const fs::path& copy, std::map<ino_t, ino_t>& inodes) {
    struct stat here {
    }, there{};
    ASSERT_EQ(lstat(source.c_str(), &here), 0) << source;
    ASSERT_EQ(lstat(copy.c_str(), &there), 0) << copy;
    EXPECT_EQ(there.st_mode, shared_mode(here)) << source;
    EXPECT_EQ(there.st_mtime, here.st_mtime) << source;
    EXPECT_EQ(xattrs_of(copy), xattrs_of(source)) << source;
    if (S_ISLNK(here.st_mode)) {
        EXPECT_EQ(fs::read_symlink(copy), fs::read_symlink(source));
    } else if (S_ISREG(here.st_mode)) {
        EXPECT_EQ(there.st_nlink, here.st_nlink) << source;
        EXPECT_EQ(inodes.try_emplace(here.st_ino, there.st_ino).first->second, there.st_ino) << source;
        EXPECT_TRUE(content_of(copy) == content_of(source)) << source;
    } else {
        const auto names = names_in(source);
        ASSERT_EQ(names_in(copy), names) << source;
        for (const auto& name : names)
            expect_same(source / name, copy / name, inodes);
    }
}

void expect_unpacks_to(const fs::path& image, const fs::path& source, const fs::path& unpacked) {
    Command command;
    command.argv = {"unsquashfs", "-q", "-n", "-d", unpacked.string(), image.string()};
    const auto outcome = run(command);
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    ASSERT_TRUE(outcome->ok()) << outcome->output;
    std::map<ino_t, ino_t> inodes;
    expect_same(source, unpacked, inodes);
}

class RandomTrees : public testing::TestWithParam<unsigned> {};

TEST_P(RandomTrees, UnpackToWhatTheyWereAndDependOnNothingElse) {
    Random random(GetParam());
    const TemporaryDirectory directory;
    const auto tree = directory / "tree";
    const char* const compressions[] = {"zstd:1", "lz4", "none"};
    const std::uint32_t block_sizes[] = {4096, 131072};
    WriterOptions options;
    options.compression = *parse_compression(compressions[GetParam() % std::size(compressions)]);
    options.block_size = block_sizes[GetParam() % std::size(block_sizes)];
    std::vector<fs::path> files;
    fill(random, tree, 4, options.block_size, files);
    const auto first = directory / "image";
    const auto written = write_tree(tree, first, options, 0);
    ASSERT_TRUE(written) << to_string(written.error());
    expect_unpacks_to(first, tree, directory / "unpacked");
    EXPECT_EQ(fs::file_size(first) % 4096, 0U);
    // The memory determines how many blocks are processed at a time, and differs between machines.
    for (const auto& [jobs, memory] : {std::pair{2U, 0U}, {4U, 64U << 20U}}) {
        options.jobs = jobs;
        options.memory = memory;
        const auto again = directory / ("image" + std::to_string(jobs));
        ASSERT_TRUE(write_tree(tree, again, options, 0));
        EXPECT_TRUE(content_of(again) == content_of(first)) << jobs;
    }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrees, testing::Range(1U, 25U));

TEST(Pack, ManyNamesInOneDirectory) {
    const TemporaryDirectory directory;
    for (int i = 0; i < 10000; ++i)
        directory.write("tree/" + std::to_string(i) + std::string(20, 'n'), std::to_string(i));
    ASSERT_TRUE(write_tree(directory / "tree", directory / "image", {.jobs = 2}, 0));
    expect_unpacks_to(directory / "image", directory / "tree", directory / "out");
}

TEST(Pack, DirectoriesNestedDeeply) {
    const TemporaryDirectory directory;
    auto path = directory / "tree";
    fs::create_directory(path);
    for (int i = 0; i < 1000; ++i)
        fs::create_directory(path /= "d"); // create_directories() fails for more than 1000 at once
    std::ofstream(path / "file") << "deep";
    const auto written = write_tree(directory / "tree", directory / "image", {}, 0);
    ASSERT_TRUE(written) << to_string(written.error());
    expect_unpacks_to(directory / "image", directory / "tree", directory / "out");
}

// Both have the same length and the same XXH32, by which libsquashfs finds duplicates.
TEST(Pack, EqualHashesAreNotEqualFiles) {
    for (const char* compression : {"zstd:3", "lz4", "none"}) {
        const TemporaryDirectory directory;
        directory.write("tree/a", "cad1cb2824f5");
        directory.write("tree/b", "d6c9caa5d5b7");
        WriterOptions options;
        options.compression = *parse_compression(compression);
        ASSERT_TRUE(write_tree(directory / "tree", directory / "image", options, 0));
        expect_unpacks_to(directory / "image", directory / "tree", directory / "out");
    }
}

TEST(Pack, ManySmallDuplicatesAreStoredOnce) {
    Random random(1);
    std::string content(20000, '\0');
    std::ranges::generate(content, [&] { return static_cast<char>(random()); });
    const TemporaryDirectory directory;
    for (int i = 0; i < 2000; ++i)
        directory.write("tree/" + std::to_string(i), content);
    const auto written = test::good(write_tree(directory / "tree", directory / "image", {.jobs = 2}, 0));
    EXPECT_EQ(written.files, 2000U);
    EXPECT_EQ(written.input_bytes, 2000 * content.size());
    EXPECT_LT(written.image_bytes, 4 * content.size());
}

TEST(Pack, TheImagesTimeIsTheNewestOrTheEpoch) {
    const TemporaryDirectory directory;
    const auto file = directory.write("tree/file", "x");
    const auto set = [](const fs::path& path, time_t seconds) {
        const timespec times[] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    };
    set(file, 2000);
    set(directory / "tree", 1500);
    const auto image_time = [&](std::optional<std::uint32_t> epoch) {
        WriterOptions options;
        options.source_date_epoch = epoch;
        const auto image = directory / (epoch ? std::to_string(*epoch) : "none");
        EXPECT_TRUE(write_tree(directory / "tree", image, options, 0));
        const auto bytes = content_of(image);
        std::uint32_t time = 0; // the third field of the superblock, little-endian
        for (std::size_t i = 0; i < 4; ++i)
            time |= std::uint32_t{static_cast<unsigned char>(bytes.at(8 + i))} << (8 * i);
        return time;
    };
    EXPECT_EQ(image_time({}), 2000U);
    EXPECT_EQ(image_time(1000), 1000U);
    EXPECT_EQ(image_time(3000), 3000U);
}

TEST(Pack, AMergedDirectoryKeepsItsTime) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "tree/merged/new");
    const auto image = directory / "image";
    auto writer = test::good(Writer::create(image, {}));
    ASSERT_TRUE(writer.add_directory("merged", {.mode = 0755, .mtime = 1000}));
    ASSERT_TRUE(add_tree(writer, directory / "tree", 022));
    ASSERT_NE(writer.directory("merged"), nullptr);
    EXPECT_EQ(writer.directory("merged")->mtime, 1000U);
    EXPECT_GT(writer.directory("merged/new")->mtime, 1000U);
    EXPECT_EQ(writer.directory("file"), nullptr);
    ASSERT_TRUE(writer.finish());
}

// Files of /proc claim to be empty and are not, which looks like a file that grows.
TEST(Pack, AFileThatGrowsIsNamed) {
    const AbandonsBlocks abandons;
    const TemporaryDirectory directory;
    const auto image = directory / "image";
    EXPECT_EQ(to_string(test::error_of(write_tree("/proc/sys/kernel/random", image, {}, 0))),
              "/proc/sys/kernel/random/boot_id: a file changed while it was being packed\nMake sure that no "
              "program writes to it, then try again.");
    EXPECT_FALSE(fs::exists(image));
}

// A large file is opened only when it is packed, so the progress callback of the previous file can change it.
TEST(Pack, LargeFilesThatChangeOrVanishAreNamed) {
    const AbandonsBlocks abandons;
    const std::map<std::string, std::function<void(const fs::path&)>> ways = {
        {"changed while", [](const fs::path& file) { fs::resize_file(file, 3 << 20); }},
        {"changed while it", [](const fs::path& file) { fs::resize_file(file, 1 << 20); }},
        {"No such file", [](const fs::path& file) { fs::remove(file); }}};
    for (const auto& [message, spoil] : ways) {
        const TemporaryDirectory directory;
        directory.write("tree/a", "first");
        const auto file = directory.write("tree/b", std::string(2 << 20, 'b'));
        const auto image = directory / "image";
        bool spoilt = false;
        const auto written = write_tree(directory / "tree", image, {}, 0, [&](std::uint64_t) {
            if (!std::exchange(spoilt, true)) spoil(file);
        });
        ASSERT_FALSE(written) << message;
        EXPECT_TRUE(to_string(written.error()).contains(message)) << to_string(written.error());
        EXPECT_EQ(written.error().where, file.string());
        EXPECT_FALSE(fs::exists(image));
    }
}

TEST(Pack, AFullDiskLeavesNoFile) {
    const AbandonsBlocks abandons;
    if (geteuid() != 0) GTEST_SKIP() << "only root can mount a small tmpfs";
    const TemporaryDirectory directory;
    const auto small = directory / "small";
    fs::create_directory(small);
    ASSERT_EQ(mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m"), 0);
    struct Unmount {
        fs::path path;
        ~Unmount() { umount2(path.c_str(), MNT_DETACH); }
    } const unmount{small};
    Random random(2);
    std::string content(300000, '\0');
    for (int i = 0; i < 30; ++i) {
        std::ranges::generate(content, [&] { return static_cast<char>(random()); });
        directory.write("tree/" + std::to_string(i), content);
    }
    const auto refused = test::error_of(write_tree(directory / "tree", small / "image", {.jobs = 2}, 0));
    EXPECT_EQ(to_string(refused),
              (small / "image").string() + ": cannot write the image: No space left on device");
    EXPECT_TRUE(fs::is_empty(small));
}

TEST(Pack, AnInterruptStopsItAndLeavesNoFile) {
    const TemporaryDirectory directory;
    directory.write("tree/file", "x");
    const auto image = directory / "image";
    const auto pack_interrupted = [&] {
        catch_interrupts();
        raise(SIGTERM);
        std::exit(write_tree(directory / "tree", image, {}, 0) ? 1 : 0);
    };
    EXPECT_EXIT(pack_interrupted(), testing::ExitedWithCode(0), ""); // own process: the flag stays set
    EXPECT_FALSE(fs::exists(image));
}

TEST(Pack, RefusesWhatItCannotPack) {
    const TemporaryDirectory directory;
    const auto file = directory.write("file", "x");
    fs::create_directory(directory / "tree");
    const auto image = directory / "image";
    EXPECT_EQ(to_string(write_tree(file, image, {}, 0).error()),
              file.string() + ": cannot pack: Not a directory");
    EXPECT_EQ(to_string(write_tree("/nonexistent", image, {}, 0).error()),
              "/nonexistent: cannot pack: No such file or directory");
    EXPECT_FALSE(fs::exists(image));
    // Existing files are neither overwritten nor removed.
    EXPECT_EQ(to_string(write_tree(directory / "tree", file, {}, 0).error()),
              file.string() + ": cannot create the image: File exists");
    EXPECT_EQ(content_of(file), "x");
}

// The reader would refuse it.
TEST(Pack, ADirectoryOfMoreNamesThanCanBeListedIsRefused) {
    const TemporaryDirectory directory;
    auto writer = test::good(Writer::create(directory / "image", {}));
    for (std::size_t bytes = 0; bytes <= largest_listing; bytes += 255) {
        const auto number = std::to_string(bytes);
        ASSERT_TRUE(writer.add_directory("full/" + std::string(255 - number.size(), 'n') + number, {}));
    }
    const auto refused = test::error_of(writer.finish());
    EXPECT_EQ(refused.where, "/full");
    EXPECT_EQ(refused.what, "a directory has too many files");
}

TEST(Pack, TheWriterRefusesEndlessPathsAndHalfFiles) {
    const TemporaryDirectory directory;
    auto writer = test::good(Writer::create(directory / "image", {}));
    std::string path = "a";
    while (path.size() < PATH_MAX)
        path += "/a";
    EXPECT_FALSE(writer.add_directory(path, {}));
    ASSERT_TRUE(writer.begin_file("half", {}));
    EXPECT_EQ(test::error_of(writer.finish()).why, "a file is still being written");
}

} // namespace
} // namespace containerize::image
