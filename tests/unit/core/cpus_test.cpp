#include "core/cpus.h"

#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

namespace containerize {
namespace {

using Cpus = std::vector<unsigned>;

TEST(CpuList, IsThatOfSysfsAndSlurm) {
    EXPECT_EQ(parse_cpu_list("0-2,8\n"), (Cpus{0, 1, 2, 8}));
    EXPECT_EQ(parse_cpu_list("5"), (Cpus{5}));
    EXPECT_EQ(parse_cpu_list(""), Cpus{});
    EXPECT_EQ(parse_cpu_list("x"), Cpus{});
    EXPECT_EQ(parse_cpu_list("3-1"), Cpus{});
}

TEST(AllowedCpus, AreThoseThatThisThreadMayUse) {
    std::thread([] {
        const auto before = allowed_cpus();
        ASSERT_FALSE(before.empty());
        use_cpus({before.back()});
        EXPECT_EQ(allowed_cpus(), Cpus{before.back()});
        EXPECT_EQ(sched_getcpu(), static_cast<int>(before.back()));
        use_cpus({most_cpus - 1}); // which no machine has
        EXPECT_EQ(allowed_cpus(), Cpus{before.back()});
        use_all_cpus();
        EXPECT_GE(allowed_cpus().size(), before.size());
    }).join();
}

} // namespace
} // namespace containerize
