#include "cluster/ranks.h"

#include <gtest/gtest.h>

namespace containerize::cluster {
namespace {

// The variables of tasks of each launcher, including those that they inherit from another one.
const Environment slurm_task = {{"SLURM_JOB_ID", "7"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_PROCID", "3"},
                                {"SLURM_NTASKS", "6"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_NODEID", "1"},
                                {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}};

Environment with(Environment variables, const Environment& more) {
    for (const auto& [name, value] : more)
        variables[name] = value;
    return variables;
}

void expect(const Environment& variables, const Ranks& expected) {
    const auto found = find_ranks(variables);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(found->launcher, expected.launcher);
    EXPECT_EQ(found->rank, expected.rank);
    EXPECT_EQ(found->size, expected.size);
    EXPECT_EQ(found->local_rank, expected.local_rank);
    EXPECT_EQ(found->local_size, expected.local_size);
    EXPECT_EQ(found->node, expected.node);
}

TEST(Ranks, OfATaskOfSlurm) {
    expect(slurm_task,
           {.launcher = Launcher::slurm, .rank = 3, .size = 6, .local_rank = 1, .local_size = 2, .node = 1});
    // srun --mpi=pmi2 and --mpi=pmix set some of them again under other names.
    expect(with(slurm_task, {{"PMI_RANK", "3"}, {"PMI_SIZE", "6"}, {"PMIX_RANK", "3"}}),
           {.launcher = Launcher::slurm, .rank = 3, .size = 6, .local_rank = 1, .local_size = 2, .node = 1});
}

TEST(Ranks, OfABatchScriptAreNone) {
    auto script = slurm_task;
    script.erase("SLURM_STEP_ID");
    expect(script, {});
    expect({}, {});
}

TEST(Ranks, OfMpiWinOverThoseOfTheirHelpersTask) {
    expect(with(slurm_task, {{"OMPI_COMM_WORLD_RANK", "5"},
                             {"OMPI_COMM_WORLD_SIZE", "8"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
           {.launcher = Launcher::mpi, .rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .node = 1});
    expect(with(slurm_task,
                {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}),
           {.launcher = Launcher::mpi, .rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .node = 1});
}

TEST(Ranks, OfTheUserWinOverAll) {
    expect(with(slurm_task,
                {{"RANK", "9"}, {"WORLD_SIZE", "10"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}),
           {.launcher = Launcher::user, .rank = 9, .size = 10, .local_rank = 1, .local_size = 2, .node = 0});
}

TEST(Ranks, ThatDoNotFitAreRefused) {
    EXPECT_FALSE(find_ranks({{"RANK", "1"}}));
    EXPECT_FALSE(find_ranks({{"RANK", "2"}, {"WORLD_SIZE", "2"}}));
    EXPECT_FALSE(find_ranks({{"RANK", "x"}, {"WORLD_SIZE", "2"}}));
    EXPECT_FALSE(find_ranks({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}));
    EXPECT_FALSE(find_ranks(with(slurm_task, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})));
}

} // namespace
} // namespace containerize::cluster
