// The text form of profiles, and the requests that are made from them.
#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "image/access_profile.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace containerize::image {
namespace {

using test::TemporaryDirectory;

const std::string digest(64, 'a');
const std::string head = "containerize-profile 1\nimage " + digest + "\n";
constexpr std::uint32_t as_it_is = 1U << 24U;

std::vector<ProfileBlock> random_blocks(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<ProfileBlock> blocks;
    std::uint64_t at = 96;
    for (int i = 0; i < 400; ++i) {
        const std::uint32_t size = 1 + random() % (128U << 10U);
        if (random() % 3 != 0) at += random() % 8 == 0 ? random() % (8U << 20U) : 0;
        blocks.push_back({.start = at, .size_field = size | (random() % 4 == 0 ? as_it_is : 0)});
        at += size;
    }
    std::ranges::shuffle(blocks, random);
    return blocks;
}

TEST(Profile, IsReadAsItWasWritten) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const Profile profile{.image = digest, .blocks = random_blocks(seed)};
        const auto text = to_text(profile);
        const auto read = test::good(parse_profile(text, "p"));
        EXPECT_EQ(read.image, digest);
        EXPECT_EQ(read.blocks, profile.blocks);
    }
    const auto empty = test::good(parse_profile(to_text({.image = digest, .blocks = {}}), "p"));
    EXPECT_TRUE(empty.blocks.empty());
}

TEST(Profile, AdjacentBlocksAreOneLine) {
    const Profile profile{.image = digest,
                          .blocks = {{.start = 96, .size_field = 10},
                                     {.start = 106, .size_field = 20 | as_it_is},
                                     {.start = 500, .size_field = 7}}};
    EXPECT_EQ(to_text(profile), head + "96 10,16777236\n500 7\n");
}

TEST(Profile, RefusesWhatItDoesNotWrite) {
    const std::string good = head + "96 10,20\n500 7\n";
    ASSERT_TRUE(parse_profile(good, "p"));
    for (const auto& bad : {
             std::string(),
             std::string("\0\0", 2),
             "containerize-profile 2\nimage " + digest + "\n",
             "containerize-profile 1\nimage " + digest,
             std::string("containerize-profile 1\nimage abc\n"),
             "containerize-profile 1\nimage " + std::string(64, 'A') + "\n",
             head + "96 10,20", // truncated
             head + "\n",       // an empty line
             head + "96\n",     // no sizes
             head + "96 \n",
             head + "96 10,\n",
             head + "96 ,10\n",
             head + "96 10 20\n",
             head + " 96 10\n",
             head + "096 10\n",
             head + "+96 10\n",
             head + "-1 10\n",
             head + "96 -1\n",
             head + "96 0\n",               // size zero
             head + "96 16777216\n",        // size zero, uncompressed
             head + "96 1048577\n",         // larger than any block
             head + "96 33554433\n",        // an unknown flag
             head + "281474976710656 10\n", // beyond the end of any image
             head + "18446744073709551615 10\n",
             head + "18446744073709551616 10\n",
             head + "96 10\n96 10\n", // the same block twice
             head + "96 10,20\n106 20\n",
             head + std::string("96 10\0\n", 7),
             head + "0x60 10\n",
         })
        EXPECT_FALSE(parse_profile(bad, "p")) << bad;
    EXPECT_FALSE(parse_profile(head + std::string(largest_profile, '1'), "p"));
}

TEST(Profile, SurvivesEveryDamage) {
    const auto text = to_text({.image = digest, .blocks = random_blocks(3)});
    std::mt19937 random(4);
    for (int i = 0; i < 3000; ++i) {
        auto damaged = text.substr(0, 600);
        damaged[random() % damaged.size()] = static_cast<char>(random());
        if (i % 3 == 0) damaged.resize(random() % damaged.size());
        const auto read = parse_profile(damaged, "p");
        if (!read) continue;
        std::set<std::uint64_t> starts;
        for (const auto& block : read->blocks) {
            EXPECT_TRUE(starts.insert(block.start).second);
            EXPECT_GT(block.stored(), 0U);
            EXPECT_LE(block.stored(), 1U << 20U);
            EXPECT_GT(block.end(), block.start);
        }
    }
}

TEST(Profile, MergingKeepsTheFirstOrderAndAddsTheRest) {
    const Profile first{.image = digest,
                        .blocks = {{.start = 300, .size_field = 1}, {.start = 100, .size_field = 1}}};
    const Profile second{.image = digest,
                         .blocks = {{.start = 100, .size_field = 1}, {.start = 200, .size_field = 1}}};
    std::vector<std::uint64_t> starts;
    for (const auto& block : merged(first, second).blocks)
        starts.push_back(block.start);
    EXPECT_EQ(starts, (std::vector<std::uint64_t>{300, 100, 200}));
}

class Requests : public testing::TestWithParam<RequestShape> {};

TEST_P(Requests, CoverEveryBlockOnceWithinTheirLimits) {
    const auto& shape = GetParam();
    for (unsigned seed = 0; seed < 20; ++seed) {
        const auto blocks = random_blocks(seed);
        auto extents = requests_for(blocks, shape);
        EXPECT_TRUE(std::ranges::is_sorted(extents, {}, &Extent::first));
        std::ranges::sort(extents, {}, &Extent::begin);
        for (std::size_t i = 0; i < extents.size(); ++i) {
            const auto& extent = extents[i];
            ASSERT_LT(extent.begin, extent.end);
            EXPECT_LE(extent.end - extent.begin, shape.size);
            if (shape.alignment != 0) {
                EXPECT_EQ(extent.begin / shape.alignment, (extent.end - 1) / shape.alignment);
            }
            if (i > 0) {
                EXPECT_GE(extent.begin, extents[i - 1].end);
            }
        }
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            auto at = blocks[i].start;
            for (const auto& extent : extents)
                if (extent.begin <= at && at < extent.end) {
                    EXPECT_LE(extent.first, i);
                    at = std::min(extent.end, blocks[i].end());
                }
            EXPECT_EQ(at, blocks[i].end());
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Shapes, Requests,
                         testing::Values(RequestShape{.size = 4U << 20U, .gap = 256U << 10U, .alignment = 0},
                                         RequestShape{.size = 1U << 20U, .gap = 0, .alignment = 1U << 20U},
                                         RequestShape{.size = 64U << 10U, .gap = 1U << 20U, .alignment = 0},
                                         RequestShape{
                                             .size = 4U << 20U, .gap = 64U << 10U, .alignment = 1U << 20U}));

TEST(Requests, SmallGapsAreReadAlongAndLargeOnesAreNot) {
    const std::vector<ProfileBlock> blocks = {{.start = 5000, .size_field = 10},
                                              {.start = 100, .size_field = 10},
                                              {.start = 210, .size_field = 10},
                                              {.start = 321, .size_field = 10}};
    const auto extents = requests_for(blocks, {.size = 1000, .gap = 100, .alignment = 0});
    ASSERT_EQ(extents.size(), 3U);
    EXPECT_EQ(extents[0].begin, 5000U);
    EXPECT_EQ(extents[1].begin, 100U);
    EXPECT_EQ(extents[1].end, 220U);
    EXPECT_EQ(extents[2].begin, 321U);
}

TEST(Recorder, NotesEachBlockOnceFromAllThreads) {
    const TemporaryDirectory directory;
    const auto file = directory.write("record", "");
    const auto blocks = random_blocks(1);
    {
        Recorder recorder(Fd(open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)));
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (const auto& block : blocks)
                    recorder.note("/a b/env.sqfs", block);
            });
    }
    // A new recorder does not know which blocks were recorded before.
    Recorder successor(Fd(open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)));
    successor.note("/a b/env.sqfs", blocks.front());
    successor.note("/other\twith\t1\t1", blocks.front());
    const auto record = parse_record(*read_file(file), file);
    ASSERT_TRUE(record) << to_string(record.error());
    ASSERT_EQ(record->size(), 2U);
    EXPECT_EQ(record->at("/a b/env.sqfs"), blocks);
    EXPECT_EQ(record->at("/other\twith\t1\t1").size(), 1U);
}

TEST(Recorder, DamagedRecordsAreRefused) {
    for (const auto* bad : {"x", "x\n", "/a\t1\n", "/a\t1\t0\n", "/a\tx\t1\n", "/a\t1\t1"})
        EXPECT_FALSE(parse_record(bad, "r")) << bad;
}

} // namespace
} // namespace containerize::image
