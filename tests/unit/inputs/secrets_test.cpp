#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "inputs/secrets.h"
#include "util/redact.h"

#include <array>

#include <gtest/gtest.h>

namespace containerize::inputs {

namespace {

TEST(SecretsOfPackages, ClonesHaveNoLogins) {
    const test::TemporaryDirectory place;
    const auto with_url = [](const std::string& login) {
        return "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://" + login + "host/x.git\n";
    };
    const std::array files = {"src/one/.git/config", "elsewhere/deep/two/.git/config",
                              "src/one/.git/modules/sub/config", "src/one/.git/modules/a/modules/b/config"};
    for (const auto* file : files) {
        fs::create_directories((place / file).parent_path());
        ASSERT_TRUE(write_file(place / file, with_url("me:s3cret-word@")));
    }
    ASSERT_TRUE(write_file(place / "config", with_url("me:s3cret-word@")));
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), place.path(), "python3.11"));
    for (const auto* file : files)
        EXPECT_EQ(read_file(place / file).value_or("none"), with_url("")) << file;
    EXPECT_EQ(read_file(place / "config").value_or("none"), with_url("me:s3cret-word@"))
        << "no file of git's";
}

TEST(SecretsOfPackages, ClonesHaveNoOtherSecretsOfTheirServer) {
    const test::TemporaryDirectory place;
    remember_variable("FEED_OF_CLONES", "feed-of-clones-4711");
    remember_variable("AUTHOR_OF_CLONES", "author-of-clones");
    const std::string url = "https://host/feed-of-clones-4711/x.git",
                      clean = "https://host/${FEED_OF_CLONES}/x.git";
    const std::string setting = "[user]\n\tname = author-of-clones\n[remote \"origin\"]\n\turl = ";
    const std::string header = "\n[http \"https://host/\"]\n";
    fs::create_directories(place / "src/one/.git/logs/refs");
    ASSERT_TRUE(
        write_file(place / "src/one/.git/config",
                   setting + url + header + "\textraheader = AUTHORIZATION: basic bWU6czNjcmV0LXdvcmQ=\n"));
    ASSERT_TRUE(write_file(place / "src/one/.git/FETCH_HEAD", "c0ffee branch 'main' of " + url + "\n"));
    ASSERT_TRUE(
        write_file(place / "src/one/.git/logs/refs/HEAD", "0 1 me <me@host> 1\tclone: from " + url + "\n"));
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), place.path(), "python3.11"));
    EXPECT_EQ(read_file(place / "src/one/.git/config").value_or("none"), setting + clean + header);
    EXPECT_EQ(read_file(place / "src/one/.git/FETCH_HEAD").value_or("none"),
              "c0ffee branch 'main' of " + clean + "\n");
    EXPECT_EQ(read_file(place / "src/one/.git/logs/refs/HEAD").value_or("none"),
              "0 1 me <me@host> 1\tclone: from " + clean + "\n");
}

TEST(SecretsOfPackages, BareClonesAndWorkingTreesHaveNoLogins) {
    const test::TemporaryDirectory place;
    const std::string with_login = "[remote \"origin\"]\n\turl = https://me:s3cret-word@host/x.git\n",
                      clean = "[remote \"origin\"]\n\turl = https://host/x.git\n";
    for (const char* directory : {"mirrors/x.git/objects", "mirrors/x.git/refs"})
        fs::create_directories(place / directory);
    place.write("mirrors/x.git/HEAD", "ref: refs/heads/main\n");
    // Not git's, although it looks much the same.
    for (const char* directory : {"data/objects", "data/refs"})
        fs::create_directories(place / directory);
    place.write("data/config", with_login);
    const std::array files = {"mirrors/x.git/config",
                              "mirrors/x.git/FETCH_HEAD",
                              "mirrors/x.git/logs/refs/heads/main",
                              "mirrors/x.git/config.worktree",
                              "src/one/.git/config.worktree",
                              "src/one/.git/worktrees/two/config.worktree"};
    for (const auto* file : files)
        place.write(file, with_login);
    place.write("mirrors/config", with_login);
    place.write("mirrors/logs/refs", with_login);
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), place.path(), "python3.11"));
    for (const auto* file : files)
        EXPECT_EQ(read_file(place / file).value_or("none"), clean) << file;
    for (const auto* file : {"mirrors/config", "mirrors/logs/refs", "data/config"})
        EXPECT_EQ(read_file(place / file).value_or("none"), with_login) << file << " is no file of git's";
}

TEST(SecretsOfPackages, LargeFilesOfClonesHaveNoLoginsEither) {
    const test::TemporaryDirectory place;
    const std::string line = "c0ffee branch 'main' of https://me:s3cret-word@host/x.git\n";
    const std::string padding = std::string(2U << 20U, '#') + "\n";
    place.write("src/one/.git/FETCH_HEAD", padding + line);
    place.write("src/one/.git/config", "[core]\n");
    // Those that are too large to be read; git needs none of them.
    const std::array removed = {"src/two/.git/FETCH_HEAD", "src/two/.git/logs/HEAD"};
    for (const auto* file : removed) {
        place.write(file, line);
        fs::resize_file(place / file, std::uint64_t{1} << 30U);
    }
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), place.path(), "python3.11"));
    const bool is_clean = read_file(place / "src/one/.git/FETCH_HEAD").value_or("none") ==
                          padding + "c0ffee branch 'main' of https://host/x.git\n";
    EXPECT_TRUE(is_clean);
    EXPECT_TRUE(fs::exists(place / "src/one/.git/config"));
    for (const auto* file : removed)
        EXPECT_FALSE(fs::exists(place / file)) << file;

    const auto config = place.write("src/two/.git/config", line);
    fs::resize_file(config, std::uint64_t{1} << 30U);
    EXPECT_EQ(test::error_of(remove_secrets_of_packages(place.path(), place.path(), "python3.11")).where,
              config.string());
}

TEST(SecretsOfPackages, ClonesAreCleanedInTheEnvironmentWhereItsWritableLayerHasThem) {
    const test::TemporaryDirectory place;
    remember_secret("tok-of-layers-77");
    const std::string line = "url = https://user:tok-of-layers-77@host/x.git\n";
    for (const auto* clone : {"src/changed/.git", "src/packaged/.git"})
        place.write(std::string("root/") + clone + "/config", line);
    // A bare clone of which a program has written only a part.
    place.write("root/bare/HEAD", "ref: refs/heads/main\n");
    place.write("root/bare/config", line);
    for (const auto* directory : {"objects", "refs"})
        fs::create_directories(place / "root/bare" / directory);
    place.write("upper/src/changed/.git/FETCH_HEAD", "");
    place.write("upper/bare/FETCH_HEAD", "");
    fs::create_directories(place / "root/lib/python3.11/site-packages");
    ASSERT_TRUE(remove_secrets_of_packages(place / "root", place / "upper", "python3.11"));
    const std::string clean = "url = https://host/x.git\n";
    EXPECT_EQ(read_file(place / "root/src/changed/.git/config").value_or("none"), clean);
    EXPECT_EQ(read_file(place / "root/bare/config").value_or("none"), clean);
    EXPECT_EQ(read_file(place / "root/src/packaged/.git/config").value_or("none"), line);
}

TEST(SecretsOfPackages, TheOriginOfAPackageNamesVariables) {
    const test::TemporaryDirectory place;
    remember_variable("FEED_OF_PACKAGES", "feed-of-packages-4711");
    const auto metadata = place / "lib/python3.11/site-packages/x-1.dist-info";
    fs::create_directories(metadata);
    ASSERT_TRUE(write_file(metadata / "direct_url.json",
                           R"({"url": "https://host/feed-of-packages-4711/x.whl", "archive_info": {}})"));
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), place.path(), "python3.11"));
    EXPECT_EQ(read_file(metadata / "direct_url.json").value_or("none"),
              R"({"archive_info":{},"url":"https://host/${FEED_OF_PACKAGES}/x.whl"})");
}

} // namespace

} // namespace containerize::inputs
