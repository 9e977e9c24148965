#include "../temporary.h"
#include "install/pip_report.h"

#include <gtest/gtest.h>

namespace containerize::install {
namespace {

using test::TemporaryDirectory;
using Texts = std::vector<std::string>;

constexpr const char* of_index = R"({"metadata": {"name": "Six", "version": "1.16.0"}, "requested": true,
    "download_info": {"url": "https://i/six.whl", "archive_info": {"hashes": {"sha256": "aa"}}}})";
constexpr const char* archive =
    R"({"metadata": {"name": "w", "version": "1"}, "is_direct": true, "requested": true,
    "download_info": {"url": "https://h/w.zip", "archive_info": {"hashes": {"sha256": "bb"}}, "subdirectory": "d"}})";
constexpr const char* repository = R"({"metadata": {"name": "r", "version": "1"}, "is_direct": true,
    "download_info": {"url": "https://github.com/o/r", "subdirectory": "py",
                      "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "c0ffee"}}})";
constexpr const char* local_repository = R"({"metadata": {"name": "l", "version": "1"}, "is_direct": true,
    "download_info": {"url": "file:///l", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}})";
constexpr const char* project = R"({"metadata": {"name": "p", "version": "1"}, "is_direct": true,
    "download_info": {"url": "file:///p", "dir_info": {}}})";
constexpr const char* editable = R"({"metadata": {"name": "e", "version": "1"}, "is_direct": true,
    "download_info": {"url": "file:///e", "dir_info": {"editable": true}}})";

Texts requirements_of(const Texts& entries) {
    std::string text;
    for (const auto& entry : entries)
        text += (text.empty() ? "" : ",") + entry;
    const auto report = parse_pip_report(R"({"version": "1", "install": [)" + text + "]}");
    return report ? report->requirements : Texts{"no report"};
}

TEST(PipReport, SaysWhereEachCameFrom) {
    EXPECT_EQ(requirements_of({of_index, archive}),
              (Texts{"Six==1.16.0 --hash=sha256:aa", "w @ https://h/w.zip#sha256=bb&subdirectory=d"}));
    EXPECT_EQ(requirements_of({repository}), Texts{"r @ git+https://github.com/o/r@c0ffee#subdirectory=py"});
    EXPECT_EQ(requirements_of({local_repository}), Texts{"git+file:///l@c0ffee#egg=l"});
    EXPECT_EQ(requirements_of({project, editable}), (Texts{"-e file:///e", "p @ file:///p"}));
    EXPECT_EQ(requirements_of({of_index, archive, repository}),
              (Texts{"Six==1.16.0", "r @ git+https://github.com/o/r@c0ffee#subdirectory=py",
                     "w @ https://h/w.zip#sha256=bb&subdirectory=d"}))
        << "pip wants --hash for all or for none";
}

TEST(PipReport, WhatWasRequestedAndWhatIsNone) {
    const auto report =
        parse_pip_report(std::string(R"({"install": [)") + archive + "," + of_index + "," + project + "]}");
    ASSERT_TRUE(report);
    EXPECT_EQ(report->requested, (Texts{"six", "w"}));
    for (const char* text : {"", "[]", "{}", R"({"install": 1})", R"({"install": [1]})"})
        EXPECT_FALSE(parse_pip_report(text)) << text;
}

TEST(LastingOptions, OfAllFilesInEveryForm) {
    const TemporaryDirectory directory;
    fs::create_directories(directory.path() / "sub/wheels");
    fs::create_directories(directory.path() / "a b");
    directory.write("sub/more.txt", "-fwheels\n--no-binary numpy\n--find-links ./'a b'\nsix\n-c pins.txt\n");
    directory.write("sub/pins.txt", "six<2\n");
    const auto file = directory.write("main.txt", "-i https://i.org/simple # ours\n"
                                                  "--extra-index-url=https://e.org/simple --pre\n"
                                                  "-r sub/more.txt\n"
                                                  "-f https://f.org/x\n"
                                                  "-e git+https://g.org/p#egg=p\n"
                                                  "rich --config-settings a=b\n"
                                                  "-i https://i.org/simple\n");
    const auto requirements = spec::read_requirements(file, directory.path());
    ASSERT_TRUE(requirements) << to_string(requirements.error());
    EXPECT_EQ(lasting_options(*requirements, directory.path()),
              (Texts{"-i https://i.org/simple", "--extra-index-url=https://e.org/simple --pre",
                     "-f" + (directory.path() / "sub/wheels").string(), "--no-binary numpy",
                     "--find-links " + directory.path().string() + "/a\\ b", "-f https://f.org/x"}));
}

} // namespace
} // namespace containerize::install
