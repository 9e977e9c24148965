#include "launch/batch_job.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

TEST(Job, SlurmsStepIsInTheNamesOfControlGroups) {
    EXPECT_EQ(job_of_cgroups("0::/system.slice/slurmstepd.scope/job_12/step_3/user/task_0\n"), "slurm-12.3");
    EXPECT_EQ(job_of_cgroups("5:freezer:/slurm/uid_1000/job_7/step_batch\n1:name=systemd:/\n"),
              "slurm-7.batch");
    EXPECT_EQ(
        job_of_cgroups(
            "9:cpuset:/slurm_n1/uid_1000/job_7\n4:freezer:/slurm_n1/uid_1000/job_7/step_extern/task_1\n"),
        "slurm-7.extern");
    // A step of a heterogeneous job.
    EXPECT_EQ(job_of_cgroups("0::/slurmstepd.scope/job_12/step_0+1/user\n"), "slurm-12.0");
}

TEST(Job, OtherSystemsHaveControlGroupsOfTheirOwn) {
    EXPECT_EQ(job_of_cgroups("0::/pbs_jobs.service/jobid/12[4].server-1\n"), "pbs-12_4_.server_1");
    EXPECT_EQ(job_of_cgroups("4:memory:/pbspro/12.server\n0::/\n"), "pbs-12.server");
    EXPECT_EQ(job_of_cgroups("4:memory:/lsf/cluster/job.123.4567.1690000000\n"), "lsf-123");
    EXPECT_EQ(job_of_cgroups("4:cpuset:/UGE/123.1\n"), "ge-123.1");
    EXPECT_EQ(job_of_cgroups("4:cpuset:/oar/user_123\n0::/\n"), "oar-user_123");
}

TEST(Job, IsNotSeenWhereThereIsNone) {
    for (const char* groups : {"", "0::/user.slice/user-1000.slice/session-2.scope\n", "0::/job_12\n",
                               "0::/job_/step_0\n", "0::/my/job_12/stepping\n", "0::/lsf/cluster\n",
                               "0::/oar/\n", "0::/system.slice/cron.service\n", "0::/docker/0123456789\n"})
        EXPECT_EQ(job_of_cgroups(groups), "") << groups;
}

TEST(Job, IsCutToWhatAFileNameTakes) {
    EXPECT_EQ(job_of_cgroups("0::/job_1/step_../../x"), "slurm-1.");
    EXPECT_EQ(job_of_cgroups("0::/pbspro/../../x"), "pbs-..");
    EXPECT_LT(job_of_cgroups("0::/job_" + std::string(1000, '1') + "/step_0").size(), 80U);
    EXPECT_LT(job_of_cgroups("0::/pbspro/" + std::string(1000, '1')).size(), 80U);
}

TEST(Job, IsReadFromTheEnvironmentWhereNoGroupTells) {
    const std::vector<std::pair<const char*, const char*>> variables = {
        {"SLURM_JOB_ID", "slurm-7.."}, {"PBS_JOBID", "pbs-7"},
        {"LSB_JOBID", "lsf-7."},       {"JOB_ID", "ge-7."},
        {"FLUX_JOB_ID", "flux-7"},     {"OAR_JOB_ID", "oar-7"},
        {"PJM_JOBID", "pjm-7."},       {"_CONDOR_SCRATCH_DIR", "condor-7"}};
    for (const auto& [name, job] : variables)
        unsetenv(name);
    EXPECT_EQ(job_of_this_process("0::/\n"), "");
    for (const auto& [name, job] : variables) {
        setenv(name, "7", 1);
        EXPECT_EQ(job_of_this_process("0::/\n"), job);
        EXPECT_EQ(job_of_this_process("0::/pbspro/8.server\n"), "pbs-8.server");
        unsetenv(name);
    }
    setenv("PBS_JOBID", "../7", 1);
    setenv("FLUX_JOB_ID", "8", 1);
    EXPECT_EQ(job_of_this_process(""), "pbs-.._7-flux-8");
    unsetenv("PBS_JOBID");
    unsetenv("FLUX_JOB_ID");
}

TEST(Job, LongIdsThatDifferAtTheirEndDiffer) {
    const std::string start = "0::/pbspro/" + std::string(100, '1');
    EXPECT_NE(job_of_cgroups(start + "2"), job_of_cgroups(start + "3"));
}

TEST(Job, AServiceOfSystemdCountsWhereThereIsNoJob) {
    EXPECT_EQ(job_of_this_process("0::/system.slice/jupyter-me.service\n"), "service-jupyter_me");
    EXPECT_EQ(job_of_this_process("12:pids:/\n1:name=systemd:/system.slice/a@b.service\n0::/\n"),
              "service-a_b");
    EXPECT_EQ(
        job_of_this_process("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service/sub\n"),
        "service-x");
    for (const char* groups :
         {"0::/\n", "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
          "0::/user.slice/user-1000.slice/session-2.scope\n", "0::/.service\n",
          "0::/system.slice/system-sshd.slice/sshd@3-10.0.0.1:22-10.0.0.2:5022.service\n"})
        EXPECT_EQ(job_of_this_process(groups), "") << groups;
    EXPECT_EQ(job_of_this_process("0::/pbs_jobs.service/jobid/12.server\n"), "pbs-12.server");
    setenv("PBS_JOBID", "7", 1);
    EXPECT_EQ(job_of_this_process("0::/system.slice/pbs.service\n"), "pbs-7");
    unsetenv("PBS_JOBID");
}

TEST(Job, LoginsAreLogindsScopes) {
    EXPECT_EQ(login_of_cgroups("0::/user.slice/user-1000.slice/session-5.scope\n"), "session-5");
    EXPECT_EQ(login_of_cgroups("1:name=systemd:/user.slice/user-1000.slice/session-c2.scope\n0::/\n"),
              "session-c2");
    for (const char* groups :
         {"", "0::/\n",
          "0::/user.slice/user-1000.slice/user@1000.service/app.slice/session-manager.service\n",
          "0::/session-.scope\n"})
        EXPECT_EQ(login_of_cgroups(groups), "") << groups;
}

} // namespace
} // namespace containerize::launch
