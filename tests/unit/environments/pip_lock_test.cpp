#include "../good.h"
#include "../temporary.h"
#include "environments/pip_lock.h"
#include "util/redact.h"

#include <gtest/gtest.h>

namespace containerize::environments {
namespace {

using test::TemporaryDirectory;
using Texts = std::vector<std::string>;

pip::Distribution distribution(const std::string& name, std::optional<pip::Origin> origin = {}) {
    return {.name = name,
            .version = "1.16.0",
            .metadata = {},
            .requested = name != "r",
            .origin = std::move(origin)};
}

pip::Origin from(const std::string& url) {
    return {.url = url, .vcs = {}, .commit = {}, .subdirectory = {}, .sha256 = {}};
}

pip::Origin repository(const std::string& url, const std::string& subdirectory) {
    return {.url = url, .vcs = "git", .commit = "c0ffee", .subdirectory = subdirectory, .sha256 = {}};
}

TEST(PipLock, SaysWhereEachCameFrom) {
    auto archive = from("https://h/w.zip");
    archive.sha256 = "bb";
    archive.subdirectory = "d";
    auto editable = from("file:///e");
    editable.directory = editable.editable = true;
    EXPECT_EQ(requirement_line(distribution("Six")), "Six==1.16.0");
    EXPECT_EQ(requirement_line(distribution("w", archive)), "w @ https://h/w.zip#sha256=bb&subdirectory=d");
    EXPECT_EQ(requirement_line(distribution("r", repository("https://github.com/o/r", "py"))),
              "r @ git+https://github.com/o/r@c0ffee#subdirectory=py");
    EXPECT_EQ(requirement_line(distribution("l", repository("file:///l", ""))), "git+file:///l@c0ffee#egg=l");
    EXPECT_EQ(requirement_line(distribution("p", from("file:///p"))), "p @ file:///p");
    EXPECT_EQ(requirement_line(distribution("e", editable)), "-e file:///e");
}

TEST(PipLock, WhatIsInstalledFitsALineIfItsChecksumIsKnownToFit) {
    const auto six = distribution("Six");
    const std::string line = "Six==1.16.0", a = " --hash=sha256:a", b = " --hash=sha256:b";
    const auto fits = [&](const std::string& wanted, const Checksums& known) {
        return fits_line(six, wanted, known);
    };
    EXPECT_TRUE(fits(line, {}));
    EXPECT_FALSE(fits("Six==1.17", {}));
    EXPECT_TRUE(fits(line + a, {{"six==1.16", a}}));
    EXPECT_TRUE(fits(line + b + a, {{"six==1.16", a}}));
    EXPECT_TRUE(fits(line + a + b, {{"six==1.16", b + a}}));
    EXPECT_FALSE(fits(line + a, {{"six==1.16", a + b}})) << "which of the two was installed?";
    EXPECT_FALSE(fits(line + a, {{"six==1.16", b}}));
    EXPECT_FALSE(fits(line + a, {})) << "nobody knows";
    auto archive = from("https://h/w.zip");
    archive.sha256 = "bb";
    EXPECT_TRUE(fits_line(distribution("w", archive), "https://h/w.zip#sha256=bb", {})) << "without its name";
    EXPECT_FALSE(fits_line(distribution("w", archive), "https://h/w.zip#sha256=cc", {}));
}

TEST(PipLock, HasTheChecksumsThatAreKnown) {
    const auto checksums = checksums_in_report(R"({"install": [
        {"metadata": {"name": "Six", "version": "1.16"}, "download_info":
            {"url": "https://i/six.whl", "archive_info": {"hashes": {"sha256": "aa"}}}},
        {"metadata": {"name": "w", "version": "1.16"}, "is_direct": true, "download_info":
            {"url": "https://h/w.zip", "archive_info": {"hashes": {"sha256": "bb"}}}}, 1]})");
    EXPECT_EQ(checksums, (Checksums{{"six==1.16", " --hash=sha256:aa"}}));
    for (const char* text : {"", "[]", "{}", R"({"install": 1})"})
        EXPECT_TRUE(checksums_in_report(text).empty()) << text;
    EXPECT_EQ(checksums_in_lines({"Two.Three==1.0     --hash=sha256:1     --hash=sha256:2", "four==1", "-i x",
                                  "f @ https://h/f.whl#sha256=1"}),
              (Checksums{{"two-three==1", " --hash=sha256:1 --hash=sha256:2"}}));
    const spec::PipSource six{
        .kind = spec::PipSource::Kind::index, .url = "https://i/six.whl", .sha256 = "aa"};
    spec::LockedEnvironment locked;
    lock_requirements({distribution("Six"), distribution("other"),
                       distribution("r", repository("https://u:secret@h/r", ""))},
                      {.checksums = checksums, .files = {{"six==1.16", six}}, .options = {"--pre"}}, locked);
    Texts lines;
    for (const auto& line : locked.pip)
        lines.push_back(line.text);
    EXPECT_EQ(lines, (Texts{"--pre", "Six==1.16.0 --hash=sha256:aa", "other==1.16.0",
                            "r @ git+https://h/r@c0ffee"}));
    EXPECT_EQ(*locked.pip_requested, (Texts{"other", "six"}));
    ASSERT_EQ(locked.of_pip->size(), 3U);
    EXPECT_EQ(locked.of_pip->at(2).commit, "c0ffee");
    EXPECT_EQ(locked.of_pip->at(0).source, six);
    EXPECT_EQ(locked.of_pip->at(1).source, spec::PipSource());
    EXPECT_EQ(locked.of_pip->at(2).source, (spec::PipSource{.kind = spec::PipSource::Kind::repository,
                                                            .url = "https://h/r",
                                                            .vcs = "git",
                                                            .commit = "c0ffee"}));
}

TEST(PipLock, OfPipAloneSaysWhatItLeavesOut) {
    const spec::PipSource six{.kind = spec::PipSource::Kind::index, .file = "six.whl", .sha256 = "aa"};
    const auto lock =
        pylock_of({distribution("pip"), distribution("other"), distribution("Six"),
                   distribution("w", from("https://h/w.zip"))},
                  {.checksums = {}, .files = {{"six==1.16", six}, {"pip==1.16", six}}, .options = {"--pre"}},
                  {"pip==1.16"});
    ASSERT_EQ(lock.packages.size(), 1U);
    EXPECT_EQ(lock.packages[0].source, six);
    EXPECT_EQ(lock.of_venv, Texts{"pip==1.16"});
    EXPECT_EQ(lock.options, Texts{"--pre"});
    EXPECT_EQ(lock.left_out, (Texts{"other 1.16.0: nothing tells from where it was installed",
                                    "w 1.16.0: its installer did not record a checksum"}));
}

TEST(LastingOptions, OfAllFilesInEveryForm) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "sub/wheels");
    fs::create_directories(directory / "a b");
    directory.write("sub/more.txt", "-fwheels\n--no-binary numpy\n--find-links ./'a b'\nsix\n-c pins.txt\n");
    directory.write("sub/pins.txt", "six<2\n");
    const auto file = directory.write("main.txt", "-i https://i.org/simple # ours\n"
                                                  "--extra-index-url=https://e.org/simple --pre\n"
                                                  "-r sub/more.txt\n"
                                                  "-f https://f.org/x\n"
                                                  "-e git+https://g.org/p#egg=p\n"
                                                  "rich --config-settings a=b\n"
                                                  "-i https://i.org/simple\n");
    const auto requirements = test::good(spec::read_requirements(file, directory.path()));
    EXPECT_EQ(lasting_options(requirements, directory.path()),
              (Texts{"-i https://i.org/simple", "--extra-index-url=https://e.org/simple --pre",
                     "-f" + (directory / "sub/wheels").string(), "--no-binary numpy",
                     "--find-links " + directory.path().string() + "/a\\ b", "-f https://f.org/x"}));
}

TEST(LastingOptions, NameVariablesWhoseValuesMayBeSecrets) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "wheels");
    setenv("CONTAINERIZE_TEST_FEED", "feed-4711-of-options", 1);
    setenv("CONTAINERIZE_TEST_PLACE", directory.path().c_str(), 1);
    const auto file = directory.write("main.txt", "-i https://h/${CONTAINERIZE_TEST_FEED}/simple\n"
                                                  "-f ${CONTAINERIZE_TEST_PLACE}/wheels\n"
                                                  "--config-settings t=${CONTAINERIZE_TEST_FEED}\n"
                                                  "six\n");
    const auto requirements = test::good(spec::read_requirements(file, directory.path()));
    EXPECT_EQ(lasting_options(requirements, directory.path()),
              (Texts{"-i https://h/${CONTAINERIZE_TEST_FEED}/simple", "-f " + (directory / "wheels").string(),
                     "--config-settings t=${CONTAINERIZE_TEST_FEED}"}));
}

TEST(PipLock, KeepsReferencesToVariablesAndNoSecrets) {
    remember_variable("FEED_OF_LOCK", "feed-of-lock-4711");
    spec::LockedEnvironment locked;
    lock_requirements(
        {distribution("six"), distribution("w", from("https://h/feed-of-lock-4711/w.whl"))},
        {.checksums = {},
         .files = {},
         .options = {"-i https://me:${TOKEN}@h/${FEED_OF_LOCK}/simple", "-i https://me:secret@h/simple?a=b",
                     "-f https://bob:$UMMERPW2024@h/f", "-f https://$USER:$UMMER@h/g"}},
        locked);
    Texts lines;
    for (const auto& line : locked.pip)
        lines.push_back(line.text);
    EXPECT_EQ(lines, (Texts{"-i https://me:${TOKEN}@h/${FEED_OF_LOCK}/simple", "-i https://h/simple",
                            "-f https://h/f", "-f https://h/g", "six==1.16.0",
                            "w @ https://h/${FEED_OF_LOCK}/w.whl"}));
}

} // namespace
} // namespace containerize::environments
