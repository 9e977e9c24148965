#include "runtime/job_step.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize::runtime {
namespace {

TEST(JobStep, IsInTheNamesOfCgroups) {
    EXPECT_EQ(step_of_cgroups("0::/system.slice/slurmstepd.scope/job_12/step_3/user/task_0\n"), "12.3");
    EXPECT_EQ(step_of_cgroups("5:freezer:/slurm/uid_1000/job_7/step_batch\n1:name=systemd:/\n"), "7.batch");
    EXPECT_EQ(
        step_of_cgroups(
            "9:cpuset:/slurm_n1/uid_1000/job_7\n4:freezer:/slurm_n1/uid_1000/job_7/step_extern/task_1\n"),
        "7.extern");
    // A step of a heterogeneous job's.
    EXPECT_EQ(step_of_cgroups("0::/slurmstepd.scope/job_12/step_0+1/user\n"), "12.0");
}

TEST(JobStep, IsNotSeenWhereThereIsNone) {
    for (const char* groups : {"", "0::/user.slice/user-1000.slice/session-2.scope\n", "0::/job_12\n",
                               "0::/job_/step_0\n", "0::/my/job_12/stepping\n"})
        EXPECT_EQ(step_of_cgroups(groups), "") << groups;
}

TEST(JobStep, IsCutToWhatAFileNameTakes) {
    EXPECT_EQ(step_of_cgroups("0::/job_1/step_../../x"), "1.");
    EXPECT_LT(step_of_cgroups("0::/job_" + std::string(1000, '1') + "/step_0").size(), 40U);
}

} // namespace
} // namespace containerize::runtime
