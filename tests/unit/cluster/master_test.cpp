#include "cluster/master.h"

#include <set>

#include <gtest/gtest.h>

namespace containerize::cluster {
namespace {

Environment step(unsigned job, const std::string& number) {
    Environment variables = {{"SLURM_JOB_ID", std::to_string(job)}};
    if (!number.empty()) variables["SLURM_STEP_ID"] = number;
    return variables;
}

TEST(Master, IsTheFirstNodeOfTheStep) {
    const Environment variables = {{"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_STEP_NODELIST", "n[3-4]"}};
    const auto hosts = find_hosts(variables, Launcher::slurm).value();
    EXPECT_EQ(master_address(variables, hosts), "n3");
    // Open MPI starts its helpers in a step on all nodes but the first.
    EXPECT_EQ(find_hosts(variables, Launcher::mpi).value().front(), "n1");
    EXPECT_EQ(master_address({}, {}), "127.0.0.1");
    EXPECT_EQ(master_address({{"MASTER_ADDR", "there"}}, hosts), "there");
}

TEST(Port, IsAnotherForEachJobAndStep) {
    std::set<std::uint16_t> ports;
    for (unsigned job = 1000; job < 1400; ++job)
        for (const char* number : {"0", "1", "62", ""})
            ports.insert(master_port(step(job, number), {}, 0).value());
    EXPECT_EQ(ports.size(), 400U * 4U);
    EXPECT_EQ(master_port(step(7, "0"), {}, 0).value(), master_port(step(7, "0"), {}, 1000).value());
}

TEST(Port, IsNoneThatOthersMayGet) {
    // As on some sites, where the kernel uses nearly all ports.
    const auto wide = parse_taken_ports("9000\t65000\n", "65100-65200,65300\n");
    for (const auto& taken : {TakenPorts{}, wide})
        for (unsigned job = 0; job < 5000; ++job) {
            const auto port = master_port(step(job, "0"), taken, 0).value();
            EXPECT_FALSE(port >= taken.ephemeral.first && port <= taken.ephemeral.second) << port;
            for (const auto& [first, last] : taken.reserved)
                EXPECT_FALSE(port >= first && port <= last) << port;
            EXPECT_NE(port, 29500);
        }
    EXPECT_FALSE(master_port(step(1, "0"), parse_taken_ports("1024 65535", ""), 0));
}

TEST(Port, OfTheUserWins) {
    auto variables = step(7, "0");
    variables["MASTER_PORT"] = "12345";
    EXPECT_EQ(master_port(variables, {}, 0).value(), 12345);
    for (const char* wrong : {"65536", "x", "-1"}) {
        variables["MASTER_PORT"] = wrong;
        EXPECT_FALSE(master_port(variables, {}, 0)) << wrong;
    }
}

TEST(Job, HasAName) {
    EXPECT_EQ(job_name(step(7, "3")), "7.3");
    EXPECT_EQ(job_name(step(7, "")), "7");
    EXPECT_EQ(job_name({{"PBS_JOBID", "123.server"}}), "123");
    EXPECT_EQ(job_name({{"OAR_JOB_ID", "5"}}), "5");
    EXPECT_EQ(job_name({{"FLUX_JOB_ID", "ƒ2oTS"}}), "local") << "has no number";
    EXPECT_EQ(job_name({}), "local");
}

} // namespace
} // namespace containerize::cluster
