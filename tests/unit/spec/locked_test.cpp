#include "../good.h"
#include "../temporary.h"
#include "data.h"
#include "spec/conda_environment.h"
#include "spec/locked_package.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

Result<LockedEnvironment> locked_in(const fs::path& file, SpecKind kind) {
    return read_locked(file, kind, {.subdir = "linux-64"});
}

/// The message about a lock that is not taken.
std::string refused(const fs::path& file, SpecKind kind) {
    const auto locked = locked_in(file, kind);
    return locked ? "taken" : to_string(locked.error());
}

TEST(LockedRealData, LockFilesHaveTheirPackages) {
    const auto directory = test::data_directory / "lockfiles";
    const auto conda_lock =
        test::good(locked_in(directory / "conda-lock-v1-numpy.yml", SpecKind::conda_lock));
    EXPECT_GT(conda_lock.packages.size(), 20U);
    for (const auto& record : conda_lock.packages)
        EXPECT_EQ(record.sha256.size(), 64U) << record.name;
    const auto pixi = test::good(locked_in(directory / "pixi-v4-python.lock", SpecKind::pixi_lock));
    EXPECT_EQ(pixi.packages.size(), 22U);
    for (const auto& record : pixi.packages)
        EXPECT_EQ(record.sha256.size(), 64U) << record.name;
    const auto other = test::error_of(
        read_locked(directory / "pixi-v4-python.lock", SpecKind::pixi_lock, {.subdir = "linux-riscv64"}));
    EXPECT_EQ(to_string(other),
              (directory / "pixi-v4-python.lock").string() +
                  ": this lock file has no package for linux-riscv64: it is for linux-64, linux-aarch64, "
                  "linux-ppc64le, osx-64, osx-arm64, win-64\nLock the environment again for that platform.");
    EXPECT_EQ(to_string(test::error_of(read_locked(directory / "conda-lock-v1-numpy.yml",
                                                   SpecKind::conda_lock, {.subdir = "linux-riscv64"}))),
              (directory / "conda-lock-v1-numpy.yml").string() +
                  ": this lock file has no package for linux-riscv64: it is for linux-64\nLock the "
                  "environment again for that platform.");
}

TEST(Locked, WhatALockHasFromAPathIsNeverLookedForByName) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "projects/a b");
    const std::string lock = R"(version: 6
environments:
  default:
    channels:
    - url: https://x.org/c
    packages:
      linux-64:
      - conda: https://x.org/c/noarch/a-1-0.conda
      - pypi: ./
      - pypi: "../projects/a b"
      - pypi: ../w-1.0-py3-none-any.whl
      - pypi: https://y.org/z-1.0-py3-none-any.whl
packages:
- conda: https://x.org/c/noarch/a-1-0.conda
  sha256: d
- pypi: ./
  name: mine
  version: 0.1.0
  sha256: ")" + std::string(64, 'a') +
                             R"("
- pypi: "../projects/a b"
  name: edited
  version: 0.1.0
  editable: true
- pypi: ../w-1.0-py3-none-any.whl
  name: w
  version: '1.0'
  sha256: b
- pypi: https://y.org/z-1.0-py3-none-any.whl
  name: z
  version: '1.0'
  sha256: c
)";
    fs::create_directory(directory / "lock");
    const auto file = directory.write("lock/pixi.lock", lock);
    EXPECT_EQ(to_string(test::error_of(locked_in(file, SpecKind::pixi_lock))),
              file.string() +
                  ":11: there is no file or directory '../w-1.0-py3-none-any.whl'\nPaths are relative to the "
                  "lock file. Put the lock file beside the files that it refers to.");
    directory.write("w-1.0-py3-none-any.whl", "");
    const auto locked = test::good(locked_in(file, SpecKind::pixi_lock));
    ASSERT_EQ(locked.pip.size(), 4U);
    const auto base = "file://" + directory.path().string();
    EXPECT_EQ(locked.pip[0].text, "mine @ " + base + "/lock/");
    EXPECT_EQ(locked.pip[1].text, "-e " + base + "/projects/a%20b");
    EXPECT_EQ(locked.pip[2].text, "w @ " + base + "/w-1.0-py3-none-any.whl#sha256=b");
    EXPECT_EQ(locked.pip[3].text, "z @ https://y.org/z-1.0-py3-none-any.whl#sha256=c");
}

TEST(Locked, OurOwnIsReadAsItWasWritten) {
    const TemporaryDirectory directory;
    LockedEnvironment locked;
    conda::PackageRecord record;
    record.name = "zlib";
    record.version = "1.3";
    record.build = "h_1";
    record.build_number = 1;
    record.file_name = "zlib-1.3-h_1.conda";
    record.url = "https://x.org/c/linux-64/zlib-1.3-h_1.conda";
    record.sha256 = std::string(64, 'a');
    record.depends = {"libgcc >=13"};
    record.noarch = conda::Noarch::generic;
    locked.packages = {record};
    locked.requested = {{"zlib", {"zlib >=1", "zlib <2"}}, {"xz", {"xz"}}};
    locked.of_pip = {{.name = "six", .version = "1.16.0", .build = {}, .commit = {}},
                     {.name = "demo", .version = "1", .build = {}, .commit = "c0ffee"},
                     {.name = "mine", .version = "2", .build = {}, .commit = {}, .directory = true}};
    locked.pip = {{.text = "six==1.16.0 --hash=sha256:00"}};
    locked.pip_requested = {"six"};
    locked.variables = {{"A", "b"}};
    locked.channels = {"https://x.org/c"};
    locked.source_date_epoch = 1'700'000'000;
    const auto text = lock_text(locked, "linux-64");
    const auto file = directory.write("containerize.lock", text);
    const auto read = test::good(locked_in(file, SpecKind::lock));
    EXPECT_EQ(lock_text(read, "linux-64"), text);
    EXPECT_EQ(read.packages.front().depends, record.depends);
    EXPECT_EQ(read.requested, locked.requested);
    ASSERT_TRUE(read.of_pip);
    ASSERT_EQ(read.of_pip->size(), 3U);
    EXPECT_EQ(read.of_pip->at(1).commit, "c0ffee");
    EXPECT_TRUE(read.of_pip->at(2).directory);
    ASSERT_EQ(read.of_conda.size(), 1U);
    EXPECT_EQ(read.of_conda.front().build, "h_1");
    EXPECT_EQ(to_string(read_locked(file, SpecKind::lock, {.subdir = "linux-aarch64"}).error()),
              file.string() + ": this lock file is for linux-64, not for linux-aarch64");
    const auto broken = directory / "broken.lock";
    const auto refusal = [&](const std::string& content) {
        directory.write("broken.lock", content);
        const auto found = recognise_supported(broken);
        if (!found || *found != SpecKind::lock) return std::string("not recognised");
        return refused(broken, SpecKind::lock);
    };
    const std::string again = "\nCopy or create it again.";
    EXPECT_EQ(refusal(text.substr(0, text.find("\"containerize-lock\""))),
              broken.string() +
                  ": the lock file is incomplete or damaged: the JSON text ends too early, in line 21" +
                  again);
    EXPECT_EQ(refusal(replaced(text, "\"conda\": [", "\"else\": [")),
              broken.string() + ": the lock file is incomplete or damaged: key 'conda' not found" + again);
    EXPECT_EQ(refusal(replaced(text, "\"containerize-lock\": 1", "\"else\": 1")),
              broken.string() + ": this is not a containerize lock file: it has no 'containerize-lock'\nGive "
                                "the file share/containerize.lock of an installation.");
    EXPECT_EQ(refusal(replaced(text, std::string(64, 'a'), "abc")),
              broken.string() + ": zlib's checksum is not a sha256: 'abc'");
    locked.packages.push_back(record);
    EXPECT_EQ(refusal(lock_text(locked, "linux-64")),
              broken.string() + ": zlib is listed twice\nRemove one of them.");
    locked.packages.back().version = "1.4";
    EXPECT_EQ(refusal(lock_text(locked, "linux-64")),
              broken.string() + ": zlib is listed twice: as zlib-1.3-h_1 and as zlib-1.4-h_1\nRemove one of "
                                "them.");
}

TEST(Locked, CredentialsServeTheDownloadAlone) {
    const TemporaryDirectory directory;
    const auto file = directory.write("list.txt", "@EXPLICIT\n"
                                                  "https://u:p@x.org/c/noarch/a-1-0.conda\n"
                                                  "https://x.org/t/to-ken/c/noarch/b-1-0.conda\n"
                                                  "https://x.org/c/noarch/c-1-0.conda\n");
    const auto locked = test::good(locked_in(file, SpecKind::conda_explicit));
    const auto& packages = locked.packages;
    ASSERT_EQ(packages.size(), 3U);
    EXPECT_EQ(packages[0].url, "https://x.org/c/noarch/a-1-0.conda");
    EXPECT_EQ(packages[0].download_url, "https://u:p@x.org/c/noarch/a-1-0.conda");
    EXPECT_EQ(packages[1].url, "https://x.org/c/noarch/b-1-0.conda");
    EXPECT_EQ(packages[1].download_url, "https://x.org/t/to-ken/c/noarch/b-1-0.conda");
    EXPECT_EQ(packages[2].download_url, "");
    for (const auto& record : packages)
        EXPECT_EQ(record.channel, "https://x.org/c");
    const auto text = lock_text(locked, "linux-64");
    EXPECT_FALSE(text.contains("u:p"));
    EXPECT_FALSE(text.contains("to-ken"));
}

TEST(Locked, ExplicitListsNameTheLineThatIsWrong) {
    const TemporaryDirectory directory;
    for (const auto& [text, message] :
         {std::pair{"@EXPLICIT\nhttps://x/linux-64/a-1-0.conda#12\n", ":2: invalid package specification"},
          {"@EXPLICIT\nnumpy\n", ":2: this is not a package URL: numpy"},
          {"# platform: osx-64\n@EXPLICIT\n", ":1: this list is for osx-64, not for linux-64"},
          {"@EXPLICIT\nhttps://x/osx-64/a-1-0.conda\n", ":2: this package is for osx-64"},
          {"@EXPLICIT\n", ": this list contains no package"}}) {
        const auto file = directory.write("list.txt", text);
        const auto locked = locked_in(file, SpecKind::conda_explicit);
        ASSERT_FALSE(locked) << text;
        EXPECT_TRUE(to_string(locked.error()).starts_with(file.string() + message))
            << to_string(locked.error());
    }
}

constexpr std::string_view commit = "0123456789abcdef0123456789abcdef01234567";
constexpr std::string_view other_commit = "ffffffffffffffffffffffffffffffffffffffff";

TEST(GitSource, TheLockedCommitIsFoundInEveryForm) {
    const std::string c(commit);
    for (const auto& [text, url, found, subdirectory] : std::vector<std::array<std::string, 4>>{
             {"git+https://h/r@" + c, "https://h/r", c, ""},
             {"git+https://h/r.git#" + c, "https://h/r.git", c, ""},
             {"git+https://h/r?rev=" + c, "https://h/r", c, ""},
             {"git+https://h/r?rev=v1#" + c, "https://h/r", c, ""},
             {"git+https://h/r?rev=" + std::string(other_commit) + "#" + c, "https://h/r", c, ""},
             {"git+https://h/r?branch=feature/x#" + c, "https://h/r", c, ""},
             {"git+https://h/r?tag=v1@2#" + c, "https://h/r", c, ""},
             {"git+https://h/r?subdirectory=a%2Fb&rev=v1#" + c, "https://h/r", c, "a/b"},
             {"git+https://h/r@" + c + "#subdirectory=py&egg=r", "https://h/r", c, "py"},
             {"git+https://h/r@v1#" + c, "https://h/r", c, ""},
             {"git+https://h/r?lfs=true&key=1#" + c, "https://h/r?key=1", c, ""},
             {"git+ssh://git@h/o/r@" + c, "ssh://git@h/o/r", c, ""},
             {"git+ssh://git@h/o/r?rev=main#" + c, "ssh://git@h/o/r", c, ""},
             {"git+file:///a%20b#" + c, "file:///a%20b", c, ""},
             {"git+https://h/r", "https://h/r", "", ""},
             {"git+https://h/r@main", "https://h/r", "", ""},
             {"git+https://h/r?branch=main", "https://h/r", "", ""},
             {"git+https://h/r#0123456", "https://h/r", "", ""}}) {
        const auto source = parse_git_source(text);
        ASSERT_TRUE(source) << text;
        EXPECT_EQ(source->url, url) << text;
        EXPECT_EQ(source->commit, found) << text;
        EXPECT_EQ(source->subdirectory, subdirectory) << text;
    }
    EXPECT_FALSE(parse_git_source("https://h/r.git"));
}

// The same packages, as each version of pixi writes them.
const std::map<std::string, std::string>& pixi_locks() {
    const std::string head = "environments:\n"
                             "  default:\n"
                             "    channels:\n"
                             "    - url: https://x.org/c/\n"
                             "    indexes:\n"
                             "    - https://pypi.org/simple\n"
                             "    packages:\n"
                             "      linux-64:\n"
                             "      - conda: https://x.org/c/linux-64/a-1.0-h0_0.conda\n"
                             "      - pypi: https://y.org/six-1.16.0-py2.py3-none-any.whl\n"
                             "      - pypi: GIT\n"
                             "      osx-64:\n"
                             "      - conda: https://x.org/c/osx-64/a-1.0-h1_0.conda\n"
                             "  test:\n"
                             "    channels:\n"
                             "    - url: https://x.org/c/\n"
                             "    packages:\n"
                             "      linux-64:\n"
                             "      - conda: https://x.org/c/linux-64/b-2.0-h0_0.conda\n"
                             "packages:\n";
    const std::string kinds = "- kind: conda\n"
                              "  name: a\n"
                              "  version: '1.0'\n"
                              "  build: h0_0\n"
                              "  subdir: linux-64\n"
                              "  url: https://x.org/c/linux-64/a-1.0-h0_0.conda\n"
                              "  sha256: AAAA\n"
                              "  depends:\n"
                              "  - b >=1\n"
                              "- kind: conda\n"
                              "  name: b\n"
                              "  version: '2.0'\n"
                              "  build: h0_0\n"
                              "  url: https://x.org/c/linux-64/b-2.0-h0_0.conda\n"
                              "  sha256: BBBB\n"
                              "- kind: pypi\n"
                              "  name: six\n"
                              "  version: 1.16.0\n"
                              "  url: https://y.org/six-1.16.0-py2.py3-none-any.whl\n"
                              "  sha256: CCCC\n"
                              "- kind: pypi\n"
                              "  name: demo\n"
                              "  version: '1.0'\n"
                              "  url: GIT\n";
    const std::string places = "- conda: https://x.org/c/linux-64/a-1.0-h0_0.conda\n"
                               "  sha256: AAAA\n"
                               "  depends:\n"
                               "  - b >=1\n"
                               "- conda: https://x.org/c/linux-64/b-2.0-h0_0.conda\n"
                               "  sha256: BBBB\n"
                               "- pypi: https://y.org/six-1.16.0-py2.py3-none-any.whl\n"
                               "  name: six\n"
                               "  version: 1.16.0\n"
                               "  sha256: CCCC\n"
                               "- pypi: GIT\n"
                               "  name: demo\n"
                               "  version: '1.0'\n";
    const std::string platforms = "platforms:\n"
                                  "- name: linux-64\n"
                                  "  virtual-packages:\n"
                                  "  - __glibc=2.28\n"
                                  "- name: osx-64\n";
    const std::string c(commit);
    static const std::map<std::string, std::string> locks = {
        {"4", replaced("version: 4\n" + head + kinds, "GIT", "git+https://h/demo@" + c)},
        {"5", replaced("version: 5\n" + head + kinds, "GIT", "git+https://h/demo?rev=v1#" + c)},
        {"6", replaced("version: 6\n" + head + places, "GIT", "git+https://h/demo?branch=main#" + c)},
        {"7", replaced("version: 7\n" + platforms + head + places, "GIT", "git+https://h/demo#" + c)}};
    return locks;
}

TEST(PixiLock, EveryVersionGivesTheSamePackages) {
    const TemporaryDirectory directory;
    for (const auto& [version, text] : pixi_locks()) {
        const auto file = directory.write("pixi.lock", text);
        const auto locked = locked_in(file, SpecKind::pixi_lock);
        ASSERT_TRUE(locked) << version << ": " << to_string(locked.error());
        ASSERT_EQ(locked->packages.size(), 1U) << version;
        EXPECT_EQ(locked->packages[0].distribution(), "a-1.0-h0_0") << version;
        EXPECT_EQ(locked->packages[0].sha256, "AAAA") << version;
        EXPECT_EQ(locked->packages[0].depends, std::vector<std::string>{"b >=1"}) << version;
        ASSERT_EQ(locked->of_conda.size(), 1U);
        EXPECT_EQ(locked->of_conda[0].build, "h0_0");
        ASSERT_EQ(locked->pip.size(), 2U) << version;
        EXPECT_EQ(locked->pip[0].text, "six @ https://y.org/six-1.16.0-py2.py3-none-any.whl#sha256=cccc");
        EXPECT_EQ(locked->pip[1].text, "demo @ git+https://h/demo@" + std::string(commit)) << version;
        ASSERT_TRUE(locked->of_pip);
        EXPECT_EQ(locked->of_pip->at(0).version, "1.16.0");
        EXPECT_EQ(locked->of_pip->at(1).name, "demo");
        EXPECT_EQ(locked->of_pip->at(1).commit, commit) << version;
    }
    const auto newer = directory.write("newer.lock", "version: 8\n");
    EXPECT_EQ(to_string(locked_in(newer, SpecKind::pixi_lock).error()),
              newer.string() + ":1: unknown version of the pixi lock format: '8':\n  1 | version: "
                               "8\nVersions 4 to 7 are supported.");
}

/// A lock of conda-lock's, with packages that each need the previous one.
std::string chain(std::size_t length) {
    std::string lock = "version: 1\npackage:\n";
    for (std::size_t i = 0; i < length; ++i) {
        const auto name = "p" + std::to_string(i);
        lock += "- name: " + name +
                "\n  version: '1'\n  manager: conda\n  platform: linux-64\n  url: https://h/c/linux-64/" +
                name + "-1-0.conda\n  hash: {md5: 0123456789abcdef0123456789abcdef}\n";
        if (i + 1 < length) lock += "  dependencies: {p" + std::to_string(i + 1) + ": ''}\n";
    }
    return lock;
}

TEST(CondaLock, SeveralMegabytesAreTakenHoweverLongTheChainOfDependencies) {
    constexpr std::size_t length = 30'000;
    const TemporaryDirectory directory;
    const auto file = directory.write("conda-lock.yml", chain(length));
    EXPECT_GT(fs::file_size(file), 5'000'000U);
    const auto locked = test::good(locked_in(file, SpecKind::conda_lock));
    ASSERT_EQ(locked.packages.size(), length);
    EXPECT_EQ(locked.packages.front().name, "p" + std::to_string(length - 1));
}

TEST(Locked, MoreEntriesThanAnyRealFileHasAreNotMade) {
    const TemporaryDirectory directory;
    const auto file =
        directory.write("pixi.lock", "version: 6\npackages: [" + std::string(8U << 20U, ',') + "]");
    EXPECT_EQ(
        to_string(test::error_of(locked_in(file, SpecKind::pixi_lock))),
        file.string() +
            ": this pixi lock file cannot be read: this file has too many entries: the limit is 1000000");
}

TEST(Locked, ListsWithMorePackagesThanAnyRealOneAreRefused) {
    const TemporaryDirectory directory;
    std::string urls = "@EXPLICIT\n";
    std::string exported;
    for (int i = 0; i < 50'000; ++i) {
        const auto name = "p" + std::to_string(i);
        urls += "https://x/linux-64/" + name + "-1-0.conda\n";
        exported += name + "=1=0\n";
    }
    const auto list = directory.write("list.txt", exported);
    EXPECT_EQ(test::good(read_list_export(list)).dependencies.size(), 50'000U);
    directory.write("list.txt", exported + "# a comment\none=1=0\n");
    EXPECT_EQ(to_string(test::error_of(read_list_export(list))),
              list.string() + ":50002: this file is too large: the limit is 50,000 packages");
    directory.write("list.txt", "a=" + std::string(1U << 20U, '1') + "=0\n");
    EXPECT_EQ(to_string(test::error_of(read_list_export(list))),
              list.string() + ":1: this file is too large: the limit is 1 MiB for a line");
    const auto explicit_list = directory.write("explicit.txt", urls + "https://x/linux-64/q-1-0.conda\n");
    EXPECT_EQ(refused(explicit_list, SpecKind::conda_explicit),
              explicit_list.string() + ":50002: this file is too large: the limit is 50,000 packages");
    const auto lock = directory.write("containerize.lock", "[" + std::string(1U << 20U, ',') + "]");
    EXPECT_EQ(refused(lock, SpecKind::lock),
              lock.string() + ": this file is too large: the limit is 1,000,000 entries");
}

TEST(PixiLock, OtherEnvironmentsAreTakenByName) {
    const TemporaryDirectory directory;
    for (const auto& [version, text] : pixi_locks()) {
        const auto file = directory.write("pixi.lock", text);
        const auto locked =
            read_locked(file, SpecKind::pixi_lock, {.subdir = "linux-64", .environment = "test"});
        ASSERT_TRUE(locked) << version << ": " << to_string(locked.error());
        ASSERT_EQ(locked->packages.size(), 1U);
        EXPECT_EQ(locked->packages[0].distribution(), "b-2.0-h0_0");
        const auto wrong = test::error_of(
            read_locked(file, SpecKind::pixi_lock, {.subdir = "linux-64", .environment = "tset"}));
        EXPECT_EQ(to_string(wrong), file.string() +
                                        ": this pixi lock file has no environment 'tset': it has default, "
                                        "test\nChoose one of these with --environment.");
    }
    const auto list = directory.write("list.txt", "@EXPLICIT\nhttps://x.org/c/noarch/a-1-0.conda\n");
    EXPECT_TRUE(
        to_string(read_locked(list, SpecKind::conda_explicit, {.subdir = "linux-64", .environment = "test"})
                      .error())
            .contains("--environment selects a part of a pixi manifest or a pixi lock file: this is an "
                      "explicit list"));
}

TEST(PixiLock, APlatformIsTakenThatTheMachineFits) {
    const TemporaryDirectory directory;
    std::string text = "version: 7\nplatforms:\n";
    for (const auto* platform :
         {"cuda13\n  subdir: linux-64\n  virtual-packages:\n  - __cuda=13.0",
          "cuda12\n  subdir: linux-64\n  virtual-packages:\n  - __cuda=12.0\n  - __archspec=1=x86_64_v3",
          "osx-64", "linux-64\n  virtual-packages:\n  - __glibc=2.28"})
        text += std::string("- name: ") + platform + "\n";
    text += "environments:\n  default:\n    channels: []\n    packages:\n";
    for (const auto* name : {"linux-64", "cuda12", "cuda13"})
        text += std::string("      ") + name + ":\n      - conda: https://x.org/c/noarch/" + name +
                "-1-0.conda\n";
    text += "packages:\n";
    for (const auto* name : {"linux-64", "cuda12", "cuda13"})
        text += std::string("- conda: https://x.org/c/noarch/") + name + "-1-0.conda\n  sha256: AA\n";
    const auto file = directory.write("pixi.lock", text);
    const auto taken = [&](std::vector<conda::VirtualPackage> machine) {
        const auto locked = read_locked(file, SpecKind::pixi_lock,
                                        {.subdir = "linux-64", .machine = [&] {
                                             return Result<std::vector<conda::VirtualPackage>>(machine);
                                         }});
        return locked ? locked->packages.at(0).name : to_string(locked.error());
    };
    const conda::VirtualPackage glibc{"__glibc", "2.36", "0"}, old{"__glibc", "2.17", "0"},
        v4{"__archspec", "1", "x86_64_v4"}, v2{"__archspec", "1", "x86_64_v2"};
    EXPECT_EQ(taken({glibc, v4}), "linux-64");
    EXPECT_EQ(taken({glibc, v4, {"__cuda", "12.4", "0"}}), "cuda12");
    EXPECT_EQ(taken({glibc, v4, {"__cuda", "13.1", "0"}}), "cuda13");
    EXPECT_EQ(taken({glibc, v2, {"__cuda", "12.4", "0"}}), "linux-64");
    EXPECT_TRUE(taken({old, v2}).contains(
        "this machine matches none of the lock file's platforms for linux-64:\n- cuda13 needs "
        "__cuda=13.0\n- cuda12 needs __cuda=12.0, __archspec=1=x86_64_v3\n- linux-64 needs __glibc=2.28"))
        << taken({old, v2});
    // A single platform is used whatever its name is.
    const auto one =
        directory.write("one.lock", "version: 7\nplatforms:\n- name: mine\n  subdir: linux-64\n  "
                                    "virtual-packages:\n  - __cuda=13.0\n"
                                    "environments:\n  default:\n    channels: []\n    packages:\n"
                                    "      mine:\n      - conda: https://x.org/c/noarch/a-1-0.conda\n"
                                    "packages:\n- conda: https://x.org/c/noarch/a-1-0.conda\n  md5: AA\n");
    EXPECT_TRUE(locked_in(one, SpecKind::pixi_lock));
}

TEST(PixiLock, WhatIsMissingIsNamed) {
    const TemporaryDirectory directory;
    const auto file = directory / "pixi.lock";
    const auto refusal = [&](const std::string& text) {
        directory.write("pixi.lock", text);
        const auto kind = recognise_supported(file);
        if (!kind || *kind != SpecKind::pixi_lock) return std::string("not recognised");
        return refused(file, *kind);
    };
    const auto lacks = [&](const std::string& key) {
        return file.string() + ": this pixi lock file is incomplete: it has no `" + key +
               ":`\nCopy or create it again.";
    };
    const std::string lock = pixi_locks().at("6");
    EXPECT_EQ(refusal(lock), "taken");
    EXPECT_EQ(refusal(lock.substr(0, lock.find("\npackages:") + 1)), lacks("packages"));
    EXPECT_EQ(refusal(lock.substr(0, 12)), lacks("environments"));
    EXPECT_EQ(refusal(replaced(lock, "version: 6\n", "")), lacks("version"));
    EXPECT_TRUE(refusal(replaced(lock, "environments:", "environments"))
                    .starts_with(file.string() + ":3: this pixi lock file cannot be read: invalid YAML"))
        << refusal(replaced(lock, "environments:", "environments"));
}

TEST(CondaLock, WhatIsMissingIsNamed) {
    const TemporaryDirectory directory;
    const auto file = directory.write("conda-lock.yml", "version: 1\nmetadata:\n  channels: []\n");
    const auto kind = test::good(recognise_supported(file));
    ASSERT_EQ(kind, SpecKind::conda_lock);
    EXPECT_EQ(to_string(locked_in(file, kind).error()),
              file.string() +
                  ": this conda-lock file is incomplete: it has no `package:`\nCopy or create it again.");
}

TEST(Locked, WhatHasNoChecksumIsRefused) {
    const TemporaryDirectory directory;
    const auto refusal = [&](const std::string& text, SpecKind kind) {
        return refused(directory.write("a.lock", text), kind);
    };
    const auto place = (directory / "a.lock").string();
    const std::string pixi = pixi_locks().at("6");
    const std::string why =
        ": its download cannot be verified\nLock it again from an index or channel that has checksums.";
    EXPECT_EQ(refusal(replaced(pixi, "  sha256: CCCC\n", ""), SpecKind::pixi_lock),
              place + ":11: the lock has no checksum for 'six'" + why);
    EXPECT_EQ(refusal(replaced(pixi, "  sha256: AAAA\n", ""), SpecKind::pixi_lock),
              place + ":10: the lock has no checksum for 'a'" + why);
    const std::string conda_lock = "version: 1\npackage:\n"
                                   "- name: a\n  manager: conda\n  platform: linux-64\n"
                                   "  url: https://h/c/linux-64/a-1-0.conda\n  hash: {md5: AA}\n"
                                   "- name: six\n  version: 1.16.0\n  manager: pip\n  platform: linux-64\n"
                                   "  url: https://y.org/six.whl\n  hash: {sha256: BB}\n";
    EXPECT_EQ(refusal(conda_lock, SpecKind::conda_lock), "taken");
    EXPECT_EQ(refusal(replaced(conda_lock, "md5: AA", ""), SpecKind::conda_lock),
              place + ":3: the lock has no checksum for 'a'" + why);
    EXPECT_EQ(refusal(replaced(conda_lock, "sha256: BB", ""), SpecKind::conda_lock),
              place + ":8: the lock has no checksum for 'six'" + why);
}

TEST(PixiLock, WhatCannotBeTakenExactlyIsRefused) {
    const TemporaryDirectory directory;
    const auto refusal = [&](std::string text) {
        return refused(directory.write("pixi.lock", text), SpecKind::pixi_lock);
    };
    const std::string lock = pixi_locks().at("6");
    EXPECT_TRUE(refusal(replaced(lock, "#" + std::string(commit), ""))
                    .contains(":12: the lock has no commit for 'demo'"));
    EXPECT_TRUE(
        refusal(replaced(lock, "- conda: https://x.org/c/linux-64/a-1.0-h0_0.conda", "- conda: ./project"))
            .contains(":10: this package must be built from source"));
    EXPECT_TRUE(refusal(replaced(lock, "- conda: https://x.org/c/linux-64/a-1.0-h0_0.conda",
                                 "- conda_source: p[1] @ ."))
                    .contains(":10: this package must be built from source"));
    EXPECT_TRUE(refusal(lock.substr(0, lock.find("- pypi: https://y.org/six", lock.find("\npackages:"))))
                    .contains(":11: this package is missing in the lock file's `packages:`"));
    EXPECT_TRUE(
        refusal(replaced(lock, "git+https", "hg+https")).contains(":12: unsupported kind of repository"));
}

TEST(CondaLock, CategoriesAreTakenWhenTheyAreAskedFor) {
    const TemporaryDirectory directory;
    std::string text = "version: 1\nmetadata:\n  platforms:\n  - linux-64\n  - osx-64\npackage:\n";
    for (const auto& [name, platform, category] :
         std::vector<std::array<std::string, 3>>{{"a", "linux-64", "main"},
                                                 {"a", "osx-64", "main"},
                                                 {"b", "linux-64", "dev"},
                                                 {"a", "linux-64", "dev"},
                                                 {"c", "linux-64", "docs"}})
        text += "- name: " + name + "\n  version: '1.0'\n  manager: conda\n  platform: " + platform +
                "\n  dependencies: {}\n  url: https://x.org/c/" + platform + "/" + name +
                "-1.0-0.conda\n  hash:\n    md5: AA\n    sha256: BB\n  category: " + category +
                "\n  optional: false\n";
    text += "- name: demo\n  version: '1.0'\n  manager: pip\n  platform: linux-64\n  dependencies: {}\n"
            "  url: git+https://h/demo@" +
            std::string(commit) +
            "\n  hash:\n    sha256: CC\n  category: main\n"
            "- name: six\n  version: 1.16.0\n  manager: pip\n  platform: linux-64\n  dependencies: {}\n"
            "  url: https://y.org/six.whl\n  hash:\n    sha256: DD\n  category: main\n";
    const auto file = directory.write("conda-lock.yml", text);
    const auto names = [&](std::vector<std::string> categories) {
        const auto locked =
            read_locked(file, SpecKind::conda_lock, {.subdir = "linux-64", .categories = categories});
        if (!locked) return to_string(locked.error());
        std::string result;
        for (const auto& record : locked->packages)
            result += record.name;
        for (const auto& note : locked->notes)
            result += "|" + note;
        return result;
    };
    EXPECT_EQ(names({}), "a|2 packages of the category 'dev' are left out. --category dev includes them.|1 "
                         "packages of the category 'docs' are left out. --category docs includes them.");
    EXPECT_EQ(names({"dev", "docs"}), "abc");
    EXPECT_EQ(names({"test"}), file.string() + ": this lock file has no category 'test' for linux-64: it has "
                                               "dev, docs, main\nGive one of these categories.");
    const auto locked = test::good(locked_in(file, SpecKind::conda_lock));
    EXPECT_EQ(locked.pip.at(0).text, "demo @ git+https://h/demo@" + std::string(commit));
    EXPECT_EQ(locked.pip.at(1).text, "six @ https://y.org/six.whl#sha256=dd");
    EXPECT_EQ(locked.of_pip->at(0).commit, commit);
}

TEST(PixiLock, AnEntryWithoutANameIsKnownByItsUrl) {
    const TemporaryDirectory directory;
    const auto text = pixi_locks().at("6");
    const auto file = directory.write("pixi.lock", replaced(text, "  name: six\n", ""));
    ASSERT_NE(read_file(file).value_or(""), text);
    const auto locked = test::good(locked_in(file, SpecKind::pixi_lock));
    ASSERT_TRUE(locked.of_pip);
    EXPECT_EQ(locked.of_pip->at(0).name, "");
    EXPECT_EQ(locked.of_pip->at(0).url, "https://y.org/six-1.16.0-py2.py3-none-any.whl");
    EXPECT_EQ(locked.of_pip->at(1).name, "demo");
}

TEST(Locked, OlderLocksOfOursDoNotSayWhatPipInstalls) {
    const TemporaryDirectory directory;
    const auto read = [&](const char* pip) {
        return locked_in(
            directory.write("containerize.lock",
                            std::string(R"({"containerize-lock": 1, "subdir": "linux-64", "channels": [],
            "conda": [], "variables": {}, "requested": {"a": "a >=1"}, "pip_requested": [], "pip": )") +
                                pip + "}"),
            SpecKind::lock);
    };
    const auto without = test::good(read("[]"));
    EXPECT_TRUE(without.of_pip);
    EXPECT_EQ(without.requested, (conda::Requests{{"a", {"a >=1"}}}));
    const auto with = test::good(read(R"(["six"])"));
    EXPECT_FALSE(with.of_pip);
}

TEST(Locked, OursWithImpossibleValuesAreRefused) {
    const TemporaryDirectory directory;
    const auto complaint = [&](const std::string& variables, const std::string& more) {
        const auto read = locked_in(
            directory.write("containerize.lock",
                            R"({"containerize-lock": 1, "subdir": "linux-64", "channels": [], "conda": [],
            "requested": {}, "pip_requested": [], "pip": [], "variables": )" +
                                variables + more + "}"),
            SpecKind::lock);
        return read ? "none" : read.error().fault == Fault::input ? read.error().what : "not of the input";
    };
    EXPECT_EQ(complaint("{}", R"(, "source_date_epoch": 4294967295)"), "none");
    for (const char* time : {"-1", "1e300", "1.5", "4294967296", "\"1\""})
        EXPECT_EQ(complaint("{}", std::string(", \"source_date_epoch\": ") + time),
                  "invalid `source_date_epoch` in this lock file");
    for (const char* variables : {R"({"A": "a\u0000b"})", R"({"a\u0000b": "A"})"})
        EXPECT_EQ(complaint(variables, ""), "a string in this lock file contains a NUL character");
    EXPECT_EQ(complaint(R"({"A": "a\\u0000b"})", ""), "none");
}

} // namespace
} // namespace containerize::spec
