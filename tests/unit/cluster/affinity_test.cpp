#include "cluster/affinity.h"
#include "good.h"
#include "temporary.h"

#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

namespace containerize::cluster {
namespace {

using Cpus = std::vector<unsigned>;

Cpus range(unsigned count) {
    Cpus cpus(count);
    std::iota(cpus.begin(), cpus.end(), 0U);
    return cpus;
}

TEST(Affinity, OrdersCpusByMemoryNodeAndCore) {
    // Two NUMA nodes of two cores with two threads each; as in Linux, second threads are numbered last.
    const test::TemporaryDirectory root;
    const auto system = root / "sys/devices/system";
    const auto write = [&](const std::string& file, const std::string& text) {
        std::filesystem::create_directories((system / file).parent_path());
        std::ofstream(system / file) << text << '\n';
    };
    write("node/online", "0-1");
    write("node/node0/cpulist", "0-1,4-5");
    write("node/node1/cpulist", "2-3,6-7");
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
              std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    const auto near = cpus_by_nearness(root.path());
    EXPECT_EQ(near, (Cpus{0, 4, 1, 5, 2, 6, 3, 7}));
    const Affinity numa{.numa = true, .masks = {}};
    EXPECT_EQ(cpus_of_task(numa, {.rank = 0, .size = 2}, range(8), near), (Cpus{0, 4, 1, 5}));
    EXPECT_EQ(cpus_of_task(numa, {.rank = 3, .size = 4}, range(8), near), (Cpus{3, 7}));
}

TEST(Affinity, LeavesWhatSlurmHasBound) {
    const Affinity numa{.numa = true, .masks = {}};
    EXPECT_EQ(cpus_of_task(numa, {.rank = 0, .size = 2}, {0, 1}, range(4)), Cpus{});
    EXPECT_EQ(cpus_of_task(numa, {.rank = 0, .size = 1}, range(4), range(4)), Cpus{});
    EXPECT_EQ(cpus_of_task(numa, {.rank = 0, .size = 8}, range(4), range(4)), Cpus{});
    EXPECT_EQ(cpus_of_task({}, {.rank = 0, .size = 2}, range(4), range(4)), Cpus{});
}

TEST(Affinity, MayBeOfMoreThan64Cpus) {
    const auto site = test::good(
        parse_site("name: x\ndescription: y\naffinity: [\"0xf\", \"0xc0000000000000000000000001\"]", "here"));
    ASSERT_EQ(site.affinity.masks.size(), 2U);
    EXPECT_EQ(cpus_of_task(site.affinity, {.rank = 0, .size = 2}, range(288), range(288)),
              (Cpus{0, 1, 2, 3}));
    EXPECT_EQ(cpus_of_task(site.affinity, {.rank = 1, .size = 2}, range(288), range(288)),
              (Cpus{0, 102, 103}));
    EXPECT_EQ(cpus_of_task(site.affinity, {.rank = 1, .size = 2}, range(72), range(72)), Cpus{});
}

TEST(Affinity, OfLumiIsNextToEachDie) {
    const auto lumi = find_site("lumi", {})->affinity;
    ASSERT_EQ(lumi.masks.size(), 8U);
    EXPECT_EQ(cpus_of_task(lumi, {.rank = 0, .size = 8}, range(128), range(128)),
              (Cpus{49, 50, 51, 52, 53, 54, 55}));
    EXPECT_EQ(cpus_of_task(lumi, {.rank = 4, .size = 8}, range(128), range(128)),
              (Cpus{1, 2, 3, 4, 5, 6, 7}));
    Cpus all;
    for (unsigned rank = 0; rank < 8; ++rank)
        for (const auto cpu : cpus_of_task(lumi, {.rank = rank, .size = 8}, range(128), range(128))) {
            EXPECT_NE(cpu % 8, 0U) << "the first of each group is the system's";
            all.push_back(cpu);
        }
    EXPECT_EQ(all.size(), 56U);
    // With only a part of the node, tasks are not bound.
    EXPECT_EQ(cpus_of_task(lumi, {.rank = 0, .size = 8}, range(40), range(128)), Cpus{});
    EXPECT_EQ(cpus_of_task(lumi, {.rank = 0, .size = 4}, range(128), range(128)), Cpus{});
}

} // namespace
} // namespace containerize::cluster
