// Whatever is read ahead and whatever a profile says, programs see the content of the image.
#include "../good.h"
#include "../happens.h"
#include "../random_trees.h"
#include "../temporary.h"
#include "image/access_profile.h"
#include "image/layers.h"
#include "image/relayout.h"
#include "image/writer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace containerize::image {
namespace {

using test::TemporaryDirectory;

struct File {
    std::string path, content;
};

/// A random tree in an image, with a profile of all its blocks.
class RandomImage {
public:
    explicit RandomImage(unsigned seed) : random_(seed) {
        const auto tree = directory_ / "tree";
        test::fill(random_, tree, 3);
        for (int i = 0; i < 3; ++i)
            directory_.write("tree/noise" + std::to_string(i), noise(random_() % 2'000'000));
        EXPECT_TRUE(write_tree(tree, image(), {}, 022));
        for (const auto& entry : fs::recursive_directory_iterator(tree))
            if (!entry.is_symlink() && entry.is_regular_file())
                files_.push_back({entry.path().lexically_relative(tree).string(), *read_file(entry.path())});
        auto layers = open();
        Profile profile;
        for (const auto& file : files_) {
            const auto reference = *layers->find(file.path);
            profile = merged(std::move(profile), {.image = {}, .blocks = *layers->blocks_of(reference)});
        }
        blocks_ = profile.blocks;
        std::ranges::shuffle(blocks_, random_);
    }

    [[nodiscard]] std::unique_ptr<Layers> open(const Instruments& instruments = {}) const {
        std::vector<Layers::ImageFile> files;
        files.push_back(
            {.file = Fd(::open(image().c_str(), O_RDONLY | O_CLOEXEC)), .path = image(), .offset = 0});
        auto layers = Layers::open(std::move(files), instruments);
        EXPECT_TRUE(layers) << to_string(layers.error());
        return std::move(*layers);
    }

    /// Reads and compares every file, in an order that depends on the seed.
    void check(Layers& layers, unsigned seed) const {
        auto files = files_;
        std::mt19937 random(seed);
        std::ranges::shuffle(files, random);
        for (const auto& file : files) {
            const auto reference = layers.find(file.path);
            ASSERT_TRUE(reference) << file.path;
            std::string content;
            for (bool more = true; more;) {
                std::vector<Slice> slices;
                ASSERT_TRUE(layers.read(*reference, content.size(), 1 + random() % 300'000, slices))
                    << file.path;
                more = !slices.empty();
                for (const auto& slice : slices)
                    content.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
            }
            EXPECT_TRUE(content == file.content) << file.path;
        }
    }
    void check_by_threads(Layers& layers, unsigned count) const {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < count; ++i)
            threads.emplace_back([this, &layers, i] { check(layers, i); });
    }

    [[nodiscard]] std::vector<std::string> paths() const {
        std::vector<std::string> paths;
        for (const auto& file : files_)
            paths.push_back(file.path);
        return paths;
    }
    [[nodiscard]] fs::path image() const { return directory_ / "image"; }
    [[nodiscard]] const std::vector<ProfileBlock>& blocks() const { return blocks_; }
    [[nodiscard]] std::mt19937& random() { return random_; }

private:
    std::string noise(std::size_t size) {
        std::string bytes(size, '\0');
        for (auto& byte : bytes)
            byte = static_cast<char>(random_());
        return bytes;
    }

    TemporaryDirectory directory_;
    std::mt19937 random_;
    std::vector<File> files_;
    std::vector<ProfileBlock> blocks_;
};

PrefetchOptions options(std::uint64_t size, unsigned depth, std::size_t memory, std::size_t ahead) {
    return {.shape = {.size = size, .gap = 64U << 10U, .alignment = 0},
            .depth = depth,
            .decompressors = 2,
            .memory = memory,
            .ahead = ahead,
            .patience = std::chrono::seconds(30),
            .idle_core = {},
            .memory_left = {}};
}

class Prefetching : public testing::TestWithParam<unsigned> {};

TEST_P(Prefetching, ShowsTheSameTreeToManyThreads) {
    RandomImage image(GetParam());
    for (const auto& how : {options(4U << 20U, 4, 64U << 20U, 16U << 20U),
                            options(100'000, 2, 300'000, 1U << 20U), // blocks across requests; little memory
                            options(1U << 20U, 1, 1, 0)}) { // less than one request: nothing is read ahead
        auto layers = image.open();
        layers->prefetch({{.image = {}, .blocks = image.blocks()}}, how);
        image.check_by_threads(*layers, 6);
    }
}

TEST_P(Prefetching, ShowsTheSameTreeWhenAProfileLies) {
    RandomImage image(GetParam());
    auto& random = image.random();
    auto blocks = image.blocks();
    for (auto& block : blocks)
        switch (random() % 6) {
        case 0:
            block.size_field ^= 1U << 24U; // compressed or not
            break;
        case 1:
            block.size_field = 1 + random() % (128U << 10U);
            break;
        case 2:
            block.start += random() % 5000;
            break;
        case 3:
            block.start = random() % (1ULL << 40U); // mostly beyond the end of the image
            break;
        default:
            break;
        }
    auto layers = image.open();
    layers->prefetch({{.image = {}, .blocks = blocks}}, options(1U << 20U, 4, 64U << 20U, 16U << 20U));
    image.check_by_threads(*layers, 6);
}

TEST_P(Prefetching, DroppedInTheMiddleItShowsTheSameTree) {
    RandomImage image(GetParam());
    // It looks how much memory is left a second after its start. At that time it has still much to read.
    auto little_left = options(200'000, 1, 64U << 20U, 16U << 20U);
    little_left.memory_left = [] { return std::uint64_t{0}; };
    Instruments slow;
    slow.read_delay = std::chrono::milliseconds(150);
    slow.statistics = std::make_shared<Statistics>();
    auto layers = image.open(slow);
    layers->prefetch({{.image = {}, .blocks = image.blocks()}}, little_left);
    ASSERT_TRUE(test::happens([&] { return slow.statistics->prefetch_dropped > 0; }));
    image.check_by_threads(*layers, 3);
    // Dropped while threads want its blocks.
    slow.read_delay = std::chrono::milliseconds(20);
    auto used = image.open(slow);
    used->prefetch({{.image = {}, .blocks = image.blocks()}}, little_left);
    image.check_by_threads(*used, 3);
    // Destroyed while its threads read ahead.
    auto gone = image.open(slow);
    gone->prefetch({{.image = {}, .blocks = image.blocks()}}, options(200'000, 4, 64U << 20U, 16U << 20U));
}
TEST_P(Prefetching, RecordedFilesComeFirstInAnImageOfTheSameTree) {
    RandomImage image(GetParam());
    const TemporaryDirectory directory;
    auto layers = image.open();
    const auto third = static_cast<std::ptrdiff_t>(image.blocks().size() / 3);
    const std::vector<ProfileBlock> some(image.blocks().begin(), image.blocks().begin() + third);
    const auto files = test::good(recorded_files(*layers, {{.image = {}, .blocks = some}}));
    const auto path = directory / "placed";
    ASSERT_TRUE(write_merged(*layers, path, {}, {.first = files}));
    auto placed = test::good(open_layers(std::vector{path}));
    image.check(*placed, 1);
    const auto blocks = test::good(recorded_blocks(*placed, files));
    // Blocks of other files come after those of recorded files, but ends of files may share a block.
    std::set<std::uint64_t> of_recorded;
    std::uint64_t last = 0;
    for (const auto& file : files) {
        const auto reference = *placed->find(file.path);
        const auto there = *placed->blocks_of(reference);
        for (const auto& block : there)
            of_recorded.insert(block.start);
        if (placed->inode(reference)->size >= placed->block_size() && !there.empty())
            last = std::max(last, there.front().start);
    }
    for (const auto& file : image.paths()) {
        const auto there = test::good(placed->blocks_of(*placed->find(file)));
        for (const auto& block : there)
            if (!of_recorded.contains(block.start)) {
                EXPECT_GT(block.start, last) << file;
            }
    }
    // No recorded block was lost, and each is found at its place in the new image.
    for (const auto& file : files) {
        const auto there = test::good(placed->blocks_of(*placed->find(file.path)));
        for (const auto& [number, place] : file.blocks)
            if (number < there.size()) {
                EXPECT_NE(std::ranges::find(blocks, there[number]), blocks.end()) << file.path;
            }
    }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Prefetching, testing::Range(1U, 7U));

TEST(Prefetch, ReadsInFewLargeRequestsWhatManySmallOnesWouldFetch) {
    RandomImage image(11);
    Instruments counted;
    auto layers = image.open(counted);
    const auto& statistics = *counted.statistics;
    const std::uint64_t tables = statistics.reads;
    const auto how = options(4U << 20U, 4, 256U << 20U, 0);
    layers->prefetch({{.image = {}, .blocks = image.blocks()}}, how);
    image.check(*layers, 1);
    const auto requests = requests_for(image.blocks(), how.shape).size();
    EXPECT_EQ(statistics.reads - tables, requests);
    EXPECT_EQ(statistics.prefetch_reads, requests);
    EXPECT_EQ(statistics.prefetch_used, (Profile{.image = {}, .blocks = image.blocks()}.bytes()));
    EXPECT_EQ(statistics.prefetch_dropped, 0U);
    EXPECT_EQ(statistics.blocks_loaded, image.blocks().size());
}

TEST(Prefetch, WhatNobodyWantsIsDroppedAndNeverMoreThanTheLimitIsHeld) {
    RandomImage image(12);
    Instruments counted;
    auto layers = image.open(counted);
    auto how = options(100'000, 4, 500'000, 0);
    how.patience = std::chrono::seconds(1);
    layers->prefetch({{.image = {}, .blocks = image.blocks()}}, how);
    const auto& statistics = *counted.statistics;
    ASSERT_TRUE(test::happens([&] { return statistics.prefetch_dropped > 0; }));
    EXPECT_LE(statistics.prefetch_bytes, how.memory);
    EXPECT_GT(statistics.prefetch_dropped, 0U);
    EXPECT_LE(statistics.prefetch_dropped, statistics.prefetch_bytes);
    EXPECT_EQ(statistics.prefetch_used, 0U);
    image.check(*layers, 1);
}

TEST(Prefetch, WhatIsDecompressedAheadIsNotLoadedAgain) {
    RandomImage image(13);
    Instruments counted;
    auto layers = image.open(counted);
    const std::vector<ProfileBlock> some(image.blocks().begin(), image.blocks().begin() + 8);
    layers->prefetch({{.image = {}, .blocks = some}}, options(4U << 20U, 4, 64U << 20U, 16U << 20U));
    const auto& statistics = *counted.statistics;
    ASSERT_TRUE(test::happens([&] { return statistics.prefetch_blocks >= some.size(); }));
    EXPECT_EQ(statistics.blocks_wanted, 0U);
    image.check(*layers, 1);
    EXPECT_EQ(statistics.blocks_loaded, image.blocks().size() - some.size());
}

} // namespace
} // namespace containerize::image
