#include "cluster/slurm_lists.h"
#include "good.h"

#include <gtest/gtest.h>

namespace containerize::cluster {
namespace {

using Names = std::vector<std::string>;

Names hosts(std::string_view list) {
    const auto expanded = expand_host_list(list);
    return expanded ? *expanded : Names{"refused"};
}

TEST(HostList, IsExpandedInItsOrder) {
    EXPECT_EQ(hosts("n1"), (Names{"n1"}));
    EXPECT_EQ(hosts("n[1-3]"), (Names{"n1", "n2", "n3"}));
    EXPECT_EQ(hosts("n[3,1-2],login1"), (Names{"n3", "n1", "n2", "login1"}));
    EXPECT_EQ(hosts("nid[000008-000011]"), (Names{"nid000008", "nid000009", "nid000010", "nid000011"}));
    EXPECT_EQ(hosts("n[08-11]"), (Names{"n08", "n09", "n10", "n11"}));
    EXPECT_EQ(hosts("gpu-[1-2]-ib0.site.org"), (Names{"gpu-1-ib0.site.org", "gpu-2-ib0.site.org"}));
    EXPECT_EQ(hosts("r[1-2]n[1-2]"), (Names{"r1n1", "r1n2", "r2n1", "r2n2"}));
}

TEST(HostList, RefusesWhatIsNone) {
    for (const char* list :
         {"", ",", "a,,b", "n[1-3", "n[3-1]", "n[]", "n[a-b]", "n[1-]", "n[1-99999999999999999999]",
          "n[1-9999999]", "a[1-2000]b[1-2000]", "a b", "$(x)", "a'b"})
        EXPECT_EQ(hosts(list), Names{"refused"}) << list;
}

TEST(HostList, HasTheLargestNumber) {
    EXPECT_EQ(hosts("n[18446744073709551614-18446744073709551615]"),
              (Names{"n18446744073709551614", "n18446744073709551615"}));
}

TEST(HostList, AShortOneCannotTakeAllMemory) {
    const std::string longest(255, 'n');
    EXPECT_EQ(hosts(longest), Names{longest});
    std::string ranges = "n[1-900000";
    for (int i = 0; i < 1000; ++i)
        ranges += ",1-900000";
    // A million names of a million bytes each, as many zeros, and a thousand million names.
    for (const auto& list :
         {std::string(1'000'000, 'n') + "[1-900000]", "n[" + std::string(1'000'000, '0') + "-9]",
          ranges + "]", longest + "[1-2]", std::string(500, '[')}) {
        const auto refused = test::error_of(expand_host_list(list));
        EXPECT_EQ(refused.fault, Fault::input);
        EXPECT_LT(to_string(refused).size(), 1000U);
    }
}

TEST(TasksPerNode, AreExpanded) {
    using Counts = std::vector<unsigned>;
    EXPECT_EQ(expand_tasks_per_node("2(x3),1").value(), (Counts{2, 2, 2, 1}));
    EXPECT_EQ(expand_tasks_per_node("8").value(), (Counts{8}));
    EXPECT_EQ(expand_tasks_per_node("").value(), Counts{});
    for (const char* list : {"x", "2(x", "2(x3", "2(3)", "(x3)", "2(x-1)", "2(x99999999)", ","})
        EXPECT_FALSE(expand_tasks_per_node(list)) << list;
}

} // namespace
} // namespace containerize::cluster
