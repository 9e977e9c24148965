#include "../temporary.h"
#include "core/resources.h"
#include "core/schedulers.h"

#include <gtest/gtest.h>

namespace containerize {

namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

/// The root directory of a recorded machine with 64 allowed CPUs and 100 GiB of free memory.
class Machine : public test::TemporaryDirectory {
public:
    Machine() {
        write("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-31,64-95\n");
        write("proc/meminfo", "MemTotal:  131072000 kB\nMemAvailable:  104857600 kB\n");
    }
    [[nodiscard]] Resources resources() const { return available_resources(path()); }
};

class SetVariable {
public:
    SetVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    SetVariable(const SetVariable&) = delete;
    SetVariable& operator=(const SetVariable&) = delete;
    ~SetVariable() { unsetenv(name_); }

private:
    const char* name_;
};

} // namespace

TEST(Resources, NoCgroups) {
    const Machine machine;
    EXPECT_EQ(machine.resources().cpus, 64U);
    EXPECT_EQ(machine.resources().memory, 100 * gibibyte);
}

TEST(Resources, Version2LimitsUpToTheRoot) {
    const Machine machine;
    machine.write("proc/self/mountinfo",
                  "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    machine.write("proc/self/cgroup", "0::/slurm/job_1/step_0\n");
    machine.write("sys/fs/cgroup/slurm/job_1/step_0/memory.max", "max\n");
    machine.write("sys/fs/cgroup/slurm/job_1/step_0/cpu.max", "max 100000\n");
    machine.write("sys/fs/cgroup/slurm/job_1/memory.max", "8589934592\n");
    machine.write("sys/fs/cgroup/slurm/cpu.max", "350000 100000\n");
    EXPECT_EQ(machine.resources().cpus, 3U);
    EXPECT_EQ(machine.resources().memory, 8 * gibibyte);
    machine.write("sys/fs/cgroup/slurm/job_1/step_0/memory.high", "4294967296\n");
    EXPECT_EQ(machine.resources().memory, 4 * gibibyte);
    machine.write("sys/fs/cgroup/slurm/cpu.max", "50000 100000\n");
    EXPECT_EQ(machine.resources().cpus, 1U);
    // Of the 3 GiB in use, 2 GiB are page cache and can be reclaimed.
    machine.write("sys/fs/cgroup/slurm/job_1/step_0/memory.current", "3221225472\n");
    machine.write("sys/fs/cgroup/slurm/job_1/step_0/memory.stat",
                  "anon 1073741824\nfile 2147483648\ninactive_file 1073741824\nactive_file 1073741824\n");
    EXPECT_EQ(machine.resources().memory, 3 * gibibyte);
    machine.write("sys/fs/cgroup/slurm/job_1/memory.current", "9663676416\n");
    EXPECT_EQ(machine.resources().memory, 0U);
}

TEST(Resources, Version1Hierarchies) {
    const Machine machine;
    machine.write("proc/self/mountinfo",
                  "31 24 0:27 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n"
                  "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    machine.write("proc/self/cgroup",
                  "9:memory:/slurm/uid_1/job_2\n4:cpu,cpuacct:/user.slice\n1:name=systemd:/x\n");
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine.write("sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", "17179869184\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_quota_us", "400000\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_period_us", "100000\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(machine.resources().cpus, 4U);
    EXPECT_EQ(machine.resources().memory, 16 * gibibyte);
    machine.write("sys/fs/cgroup/memory/slurm/uid_1/memory.usage_in_bytes", "3221225472\n");
    machine.write("sys/fs/cgroup/memory/slurm/uid_1/memory.stat",
                  "cache 1073741824\ninactive_file 5\ntotal_inactive_file 1073741824\ntotal_active_file 0\n");
    EXPECT_EQ(machine.resources().memory, 14 * gibibyte);
}

TEST(Resources, ContainersThatMountTheirOwnCgroupAlone) {
    const Machine machine;
    machine.write("proc/self/mountinfo",
                  "33 24 0:29 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    machine.write("proc/self/cgroup", "9:memory:/docker/ab/sub\n");
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(machine.resources().memory, 2 * gibibyte);
    // A path outside of the container's view.
    machine.write("proc/self/cgroup", "9:memory:/../other\n");
    EXPECT_EQ(machine.resources().memory, 2 * gibibyte);
}

TEST(Resources, EmptyTree) {
    const test::TemporaryDirectory nothing;
    EXPECT_EQ(available_resources(nothing.path()).cpus, 1U);
}

TEST(Resources, OfThisMachine) {
    const auto here = available_resources();
    EXPECT_GE(here.cpus, 1U);
    EXPECT_GT(here.memory, std::uint64_t{1} << 20U);
}

TEST(Resources, InABatchJob) {
    const Machine machine;
    EXPECT_FALSE(machine.resources().in_job);
    const SetVariable allocation("SLURM_JOB_ID", "1");
    EXPECT_FALSE(machine.resources().in_job) << "salloc's shell is on the login node";
    const SetVariable node("SLURMD_NODENAME", "nid1");
    EXPECT_TRUE(machine.resources().in_job);
}

TEST(Resources, InAJobOfAnyScheduler) {
    const Machine machine;
    for (const auto& scheduler : schedulers) {
        EXPECT_FALSE(machine.resources().in_job) << scheduler.name;
        const SetVariable job(scheduler.variables.front().name(), "1");
        EXPECT_EQ(machine.resources().in_job, !scheduler.on_nodes) << scheduler.name;
        if (!scheduler.on_nodes) continue;
        const SetVariable node(scheduler.on_nodes.name(), "1");
        EXPECT_TRUE(machine.resources().in_job) << scheduler.name;
    }
}

TEST(DefaultJobs, ByPlaceAndMemory) {
    EXPECT_EQ(default_jobs({.cpus = 64, .memory = 100 * gibibyte, .in_job = true}), 64U);
    EXPECT_EQ(default_jobs({.cpus = 64, .memory = 100 * gibibyte, .in_job = false}), 8U);
    EXPECT_EQ(default_jobs({.cpus = 64, .memory = 2 * gibibyte, .in_job = true}), 4U);
    EXPECT_EQ(default_jobs({.cpus = 2, .memory = 1, .in_job = false}), 1U);
}

} // namespace containerize
