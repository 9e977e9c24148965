#include "cluster/job_script.h"
#include "core/filesystem.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

namespace containerize::cluster {
namespace {

JobRequest request(unsigned nodes, unsigned gpus) {
    return {
        .name = "train", .prefix = "/env", .program = "train.py", .site = {}, .nodes = nodes, .gpus = gpus};
}

TEST(JobScript, HasWhatWasAskedFor) {
    const auto dawn = find_site("dawn", {}).value();
    const auto text =
        "#SBATCH --gpus-per-node=@GPUS@\n@SITE_LINES@\nrun -n @NTASKS@ @PROGRAM@ \"$@\" me@host @\n";
    const auto script = fill_job_script(text, request(2, 4), dawn).value();
    EXPECT_TRUE(script.starts_with("#SBATCH --gpus-per-node=4\n#SBATCH --partition="));
    EXPECT_TRUE(script.ends_with("\nrun -n 16 train.py \"$@\" me@host @\n"));
}

TEST(JobScript, LeavesOutWhatThereIsNone) {
    auto generic = find_site("generic", {}).value();
    generic.job.clear();
    EXPECT_EQ(
        fill_job_script("#SBATCH --gpus=@GPUS@\n@SITE_LINES@\n@TASKS@\n", request(1, 0), generic).value(),
        "1\n");
    EXPECT_EQ(fill_job_script("@SITE_EXPORT@\n@TASKS@\n", request(1, 0), generic).value(), "1\n");
    auto named = request(1, 0);
    named.site = "/appl/here.yaml";
    EXPECT_EQ(fill_job_script("@SITE_EXPORT@\n", named, generic).value(),
              "export CONTAINERIZE_SITE=/appl/here.yaml\n");
    EXPECT_FALSE(fill_job_script("@MOON@", request(1, 0), generic));
}

TEST(JobScript, IsMadeOfEachTemplate) {
    std::set<std::string> kinds;
    for (const auto& entry : fs::directory_iterator(CONTAINERIZE_SOURCE_DIR "/templates/jobs")) {
        const auto text = read_file(entry.path()).value();
        const auto script = fill_job_script(text, request(1, 2), find_site("generic", {}).value());
        ASSERT_TRUE(script) << entry.path() << ": " << to_string(script.error());
        EXPECT_TRUE(script->starts_with("#!/bin/bash\n")) << entry.path();
        EXPECT_TRUE(script->contains("#SBATCH --nodes=1\n")) << entry.path();
        kinds.insert(entry.path().stem());
    }
    for (const auto& default_one : {request(1, 0), request(1, 2), request(2, 0)})
        EXPECT_TRUE(kinds.contains(default_kind(default_one)));
}

TEST(JobScript, IsOfTheKindThatFits) {
    EXPECT_EQ(default_kind(request(1, 0)), "single");
    EXPECT_EQ(default_kind(request(1, 1)), "single");
    EXPECT_EQ(default_kind(request(1, 2)), "standalone");
    EXPECT_EQ(default_kind(request(2, 0)), "torchrun");
}

} // namespace
} // namespace containerize::cluster
