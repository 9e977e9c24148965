#include "cluster/rank.h"
#include "cluster/site.h"
#include "good.h"
#include "temporary.h"
#include "users.h"

#include <array>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::cluster {
namespace {

TEST(Site, ProfilesThatAreBuiltInAreGood) {
    for (const auto& name : site_names()) {
        const auto site = test::good(find_site(name, {}));
        EXPECT_EQ(site.name, name);
        EXPECT_FALSE(site.description.empty());
    }
}

TEST(Site, IsRecognised) {
    EXPECT_EQ(find_site("", {{"SLURM_CLUSTER_NAME", "lumi"}})->name, "lumi");
    EXPECT_EQ(find_site("", {{"SLURM_CLUSTER_NAME", "other"}})->name, "generic");
    EXPECT_EQ(find_site("dawn", {{"SLURM_CLUSTER_NAME", "lumi"}})->name, "dawn");
    EXPECT_FALSE(find_site("mars", {}));
}

TEST(Site, MayBeAFile) {
    const test::TemporaryDirectory directory;
    const auto file = directory / "site.yaml";
    std::ofstream(file) << "name: mine\ndescription: ours\nenvironment: {A: b}\naffinity: numa\n";
    const auto site = test::good(find_site(file.string(), {}));
    EXPECT_EQ(site.environment, (Settings{{"A", "b"}}));
    EXPECT_TRUE(site.affinity.numa);
    EXPECT_FALSE(find_site("./missing.yaml", {}));
}

TEST(Site, RefusesWhatIsNoProfile) {
    for (const char* text :
         {"", "[]", "name: x", "{", "name: x\ndescription: y\nwrong: z",
          "name: x\ndescription: y\nenvironment: {A-B: c}", "name: x\ndescription: y\ncaches: {A: ../b}",
          "name: x\ndescription: y\naffinity: [zz]", "name: x\ndescription: y\naffinity: [ffzz]",
          "name: x\ndescription: y\naffinity: [\"-1\"]", "name: x\ndescription: y\naffinity: [0x]",
          "name: x\ndescription: y\nenvironment: [a]"})
        EXPECT_FALSE(parse_site(text, "here")) << text;
    const auto large = parse_site("name: [" + std::string(500'000, ',') + "]", "here");
    EXPECT_EQ(to_string(large.error()), "here: the site profile has too many entries");
}

TEST(Settings, AreThoseThatAreNotSet) {
    const Place place{
        .ranks =
            {.launcher = Launcher::slurm, .rank = 3, .size = 4, .local_rank = 1, .local_size = 2, .node = 1},
        .hosts = {"n1", "n2"},
        .address = "n1",
        .port = 12345,
        .job = "7.2"};
    const auto settings = rank_settings({{"MASTER_PORT", "1"}, {"NODE_RANK", ""}}, place);
    const Settings expected = {{"MASTER_ADDR", "n1"}, {"WORLD_SIZE", "4"},       {"RANK", "3"},
                               {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "2"}, {"NODE_RANK", "1"}};
    EXPECT_EQ(settings, expected);
}

TEST(Torchrun, FindsTheOtherNodes) {
    const Environment variables = {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "2"}, {"SLURMD_NODENAME", "n2"}};
    Place place{
        .ranks =
            {.launcher = Launcher::slurm, .rank = 1, .size = 2, .local_rank = 0, .local_size = 1, .node = 1},
        .hosts = {"n1", "n2"},
        .address = "n1",
        .port = 12345,
        .job = "7.2"};
    const std::vector<std::string> expected = {"torchrun",
                                               "--nproc-per-node=8",
                                               "--nnodes=2",
                                               "--rdzv-id=7.2",
                                               "--rdzv-backend=c10d",
                                               "--rdzv-endpoint=n1:12345",
                                               "--rdzv-conf=is_host=false",
                                               "--local-addr=n2"};
    EXPECT_EQ(torchrun_command("torchrun", variables, place, 8, "host"), expected);
    place.hosts.pop_back();
    EXPECT_EQ(torchrun_command("torchrun", variables, place, 8, "host"),
              (std::vector<std::string>{"torchrun", "--nproc-per-node=8", "--standalone"}));
}

TEST(Caches, AreOfTheUserAlone) {
    const test::TemporaryDirectory directory;
    const std::array parents = {directory.path().string()};
    const auto site = find_site("lumi", {}).value();
    const auto caches = make_caches({{"TRITON_CACHE_DIR", "/mine"}}, site, parents, 1000).value();
    EXPECT_TRUE(caches.refused.empty());
    ASSERT_EQ(caches.settings.size(), site.caches.size() - 1);
    for (const auto& [name, path] : caches.settings) {
        struct stat info {};
        ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
        EXPECT_EQ(info.st_mode & 0777U, 0700U) << name;
    }
}

TEST(Caches, AreUsableWhateverTheUmaskIs) {
    const test::TemporaryDirectory directory;
    const std::array parents = {directory.path().string()};
    const auto site = find_site("lumi", {}).value();
    EXPECT_EQ(test::in_process([&] {
                  umask(0777);
                  const auto caches = make_caches({}, site, parents, 1000);
                  return std::to_string(caches && caches->refused.empty() ? caches->settings.size() : 0);
              }),
              std::to_string(site.caches.size()));
    for (const auto& [name, subdirectory] : site.caches) {
        struct stat info {};
        ASSERT_EQ(stat((directory / "containerize-cache-1000" / subdirectory).c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777U, 0700U) << name;
    }
}

// A warning, since programs work without it.
TEST(Caches, OneThatCannotBeMadeIsLeftOut) {
    const test::TemporaryDirectory directory;
    const std::array parents = {directory.path().string()};
    const auto site = find_site("lumi", {}).value();
    const auto& [name, subdirectory] = site.caches.front();
    const auto own = directory / "containerize-cache-1000";
    ASSERT_TRUE(make_caches({}, site, parents, 1000));
    std::filesystem::remove(own / subdirectory);
    std::ofstream(own / subdirectory) << "a file";
    const auto caches = make_caches({}, site, parents, 1000).value();
    ASSERT_EQ(caches.refused.size(), 1U);
    EXPECT_EQ(caches.refused.front().where, (own / subdirectory).string());
    EXPECT_EQ(caches.settings.size(), site.caches.size() - 1);
    // Named by a job script, it would be used nevertheless.
    EXPECT_FALSE(make_caches({{name, (own / subdirectory).string()}}, site, parents, 1000));
}

// Another user may have created it and put files in it that would be loaded.
TEST(Caches, AreElsewhereWhereAnotherHasTheirName) {
    const test::TemporaryDirectory directory;
    const auto site = find_site("lumi", {}).value();
    const auto taken = directory / "taken";
    const auto link = directory / "link";
    const auto free = directory / "free";
    std::filesystem::create_directories(taken / "containerize-cache-1000");
    chmod((taken / "containerize-cache-1000").c_str(), 0777);
    std::filesystem::create_directories(link);
    ASSERT_EQ(symlink("/tmp", (link / "containerize-cache-1000").c_str()), 0);
    std::filesystem::create_directories(free);

    const std::array parents = {taken.string(), link.string(), free.string()};
    const auto caches = make_caches({}, site, parents, 1000).value();
    EXPECT_EQ(caches.refused.size(), 2U);
    ASSERT_EQ(caches.settings.size(), site.caches.size());
    for (const auto& [name, path] : caches.settings)
        EXPECT_TRUE(path.starts_with(free.string())) << name;

    // Set by a job script, with the path of another node.
    const auto& [name, subdirectory] = site.caches.front();
    const Environment told = {{name, (taken / "containerize-cache-1000" / subdirectory).string()}};
    EXPECT_EQ(make_caches(told, site, parents, 1000)->settings.size(), site.caches.size());

    const std::array none = {taken.string()};
    EXPECT_TRUE(make_caches({}, site, none, 1000)->settings.empty());
    EXPECT_FALSE(make_caches(told, site, none, 1000));
}

} // namespace
} // namespace containerize::cluster
