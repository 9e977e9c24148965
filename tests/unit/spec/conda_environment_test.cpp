#include "../temporary.h"
#include "fixtures.h"
#include "spec/conda_environment.h"

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;

TEST(EnvironmentYaml, EveryPartIsRead) {
    const TemporaryDirectory directory;
    setenv("CHANNEL_TOKEN", "abc", 1);
    const auto file = directory.write("env.yml", R"(name: demo
channels:
  - conda-forge
  - https://x.org/t/${CHANNEL_TOKEN}/private
  - ./local
  - nodefaults
dependencies:
  - python=3.11
  - conda-forge::numpy >=1.20,<2   # a comment
  - sel(linux): patchelf
  - sel(osx): cctools
  - sel(unix):
    - gawk
  - pip:
    - rich
    - --extra-index-url https://y.org/simple
    - -r more.txt
variables:
  A: 1
  B: "x y"
channel_priority: strict
prefix: /x
unknown: 1
)");
    const auto environment = read_environment_yaml(file);
    ASSERT_TRUE(environment) << to_string(environment.error());
    EXPECT_EQ(environment->name, "demo");
    ASSERT_EQ(environment->channels.size(), 3U);
    EXPECT_EQ(environment->channels[1].text, "https://x.org/t/abc/private");
    EXPECT_EQ(environment->channels[2].text, (directory.path() / "local").string());
    EXPECT_EQ(environment->channels[0].where, file.string() + ":3");
    EXPECT_TRUE(environment->no_defaults);
    ASSERT_EQ(environment->dependencies.size(), 4U);
    EXPECT_EQ(environment->dependencies[1].spec.channel, "conda-forge");
    EXPECT_EQ(environment->dependencies[1].where, file.string() + ":9");
    EXPECT_EQ(environment->dependencies[2].spec.name, "patchelf");
    EXPECT_EQ(environment->dependencies[3].spec.name, "gawk");
    ASSERT_EQ(environment->pip.size(), 3U);
    EXPECT_EQ(environment->pip[1].text, "--extra-index-url https://y.org/simple");
    EXPECT_EQ(environment->variables,
              (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "x y"}}));
    EXPECT_EQ(environment->channel_priority, conda::ChannelPriority::strict);
    EXPECT_EQ(environment->notes.size(), 2U);
}

TEST(EnvironmentYaml, AnAliasBombAndDeepNestingAreRefusedQuickly) {
    const TemporaryDirectory directory;
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c < 'i'; ++c) {
        const std::string before(1, static_cast<char>(c - 1));
        bomb += std::string(1, c) + ": &" + c + " [*" + before + ",*" + before + ",*" + before + ",*" +
                before + "]\n";
    }
    bomb += "dependencies: *h\n";
    EXPECT_FALSE(read_environment_yaml(directory.write("bomb.yml", bomb)));
    EXPECT_FALSE(
        read_environment_yaml(directory.write("deep.yml", "dependencies: " + std::string(100'000, '['))));
}

TEST(EnvironmentYamlRealData, EveryFileIsReadOrRefusedWithItsReason) {
    const auto files = test::fixtures("conda/env-yml", "");
    if (files.empty()) GTEST_SKIP() << "the fixtures are not there";
    std::size_t read = 0;
    for (const auto& file : files) {
        const auto environment = read_environment_yaml(file);
        if (environment) {
            ++read;
            continue;
        }
        std::cout << to_string(environment.error()) << "\n";
        EXPECT_EQ(environment.error().fault, Fault::input);
        EXPECT_TRUE(environment.error().where.starts_with(file.string())) << to_string(environment.error());
    }
    EXPECT_GE(read + 2, files.size());
}

TEST(LockedRealData, LockFilesHaveTheirPackages) {
    const auto directory = test::fixture_directory() / "conda/lockfiles";
    if (!fs::exists(directory)) GTEST_SKIP() << "the fixtures are not there";
    const auto conda_lock =
        read_locked(directory / "conda-lock-v1-numpy.yml", SpecKind::conda_lock, "linux-64");
    ASSERT_TRUE(conda_lock) << to_string(conda_lock.error());
    EXPECT_GT(conda_lock->packages.size(), 20U);
    for (const auto& record : conda_lock->packages)
        EXPECT_EQ(record.sha256.size(), 64U) << record.name;
    const auto pixi = read_locked(directory / "pixi-v4-python.lock", SpecKind::pixi_lock, "linux-64");
    ASSERT_TRUE(pixi) << to_string(pixi.error());
    EXPECT_EQ(pixi->packages.size(), 22U);
    for (const auto& record : pixi->packages)
        EXPECT_EQ(record.sha256.size(), 64U) << record.name;
    const auto other = read_locked(directory / "pixi-v4-python.lock", SpecKind::pixi_lock, "linux-riscv64");
    ASSERT_FALSE(other);
    EXPECT_NE(to_string(other.error()).find("this lock file has no package for linux-riscv64"),
              std::string::npos);
}

TEST(Locked, WhatALockHasFromAPathIsNeverLookedForByName) {
    const TemporaryDirectory directory;
    fs::create_directories(directory.path() / "projects/a b");
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
    fs::create_directory(directory.path() / "lock");
    const auto file = directory.write("lock/pixi.lock", lock);
    const auto missing = read_locked(file, SpecKind::pixi_lock, "linux-64");
    ASSERT_FALSE(missing);
    EXPECT_EQ(to_string(missing.error()),
              file.string() + ":11: there is no file or directory '../w-1.0-py3-none-any.whl'\n"
                              "Paths are relative to the lock file: put it beside what it locks.");
    directory.write("w-1.0-py3-none-any.whl", "");
    const auto locked = read_locked(file, SpecKind::pixi_lock, "linux-64");
    ASSERT_TRUE(locked) << to_string(locked.error());
    ASSERT_EQ(locked->pip.size(), 4U);
    const auto base = "file://" + directory.path().string();
    EXPECT_EQ(locked->pip[0].text, "mine @ " + base + "/lock/");
    EXPECT_EQ(locked->pip[1].text, "-e " + base + "/projects/a%20b");
    EXPECT_EQ(locked->pip[2].text, "w @ " + base + "/w-1.0-py3-none-any.whl#sha256=b");
    EXPECT_EQ(locked->pip[3].text, "z @ https://y.org/z-1.0-py3-none-any.whl#sha256=c");
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
    locked.requested = {{"zlib", "zlib >=1"}};
    locked.pip = {{.text = "six==1.16.0 --hash=sha256:00", .where = {}}};
    locked.pip_requested = {"six"};
    locked.variables = {{"A", "b"}};
    locked.channels = {"https://x.org/c"};
    locked.source_date_epoch = 1'700'000'000;
    const auto text = lock_text(locked, "linux-64");
    const auto file = directory.write("containerize.lock", text);
    const auto read = read_locked(file, SpecKind::lock, "linux-64");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(lock_text(*read, "linux-64"), text);
    EXPECT_EQ(read->packages.front().depends, record.depends);
    EXPECT_EQ(to_string(read_locked(file, SpecKind::lock, "linux-aarch64").error()),
              file.string() + ": this lock file is for linux-64, and this machine is linux-aarch64");
    const auto broken = directory.write("broken.lock", text.substr(0, text.size() / 2));
    EXPECT_NE(to_string(read_locked(broken, SpecKind::lock, "linux-64").error())
                  .find("this is not a whole lock file"),
              std::string::npos);
}

TEST(Locked, CredentialsServeTheDownloadAlone) {
    const TemporaryDirectory directory;
    const auto file = directory.write("list.txt", "@EXPLICIT\n"
                                                  "https://u:p@x.org/c/noarch/a-1-0.conda\n"
                                                  "https://x.org/t/to-ken/c/noarch/b-1-0.conda\n"
                                                  "https://x.org/c/noarch/c-1-0.conda\n");
    const auto locked = read_locked(file, SpecKind::conda_explicit, "linux-64");
    ASSERT_TRUE(locked) << to_string(locked.error());
    const auto& packages = locked->packages;
    ASSERT_EQ(packages.size(), 3U);
    EXPECT_EQ(packages[0].url, "https://x.org/c/noarch/a-1-0.conda");
    EXPECT_EQ(packages[0].download_url, "https://u:p@x.org/c/noarch/a-1-0.conda");
    EXPECT_EQ(packages[1].url, "https://x.org/c/noarch/b-1-0.conda");
    EXPECT_EQ(packages[1].download_url, "https://x.org/t/to-ken/c/noarch/b-1-0.conda");
    EXPECT_EQ(packages[2].download_url, "");
    for (const auto& record : packages)
        EXPECT_EQ(record.channel, "https://x.org/c");
    const auto text = lock_text(*locked, "linux-64");
    EXPECT_EQ(text.find("u:p"), std::string::npos);
    EXPECT_EQ(text.find("to-ken"), std::string::npos);
}

TEST(Locked, ExplicitListsNameTheLineThatIsWrong) {
    const TemporaryDirectory directory;
    for (const auto& [text, message] :
         {std::pair{"@EXPLICIT\nhttps://x/linux-64/a-1-0.conda#12\n", ":2: not a package specification"},
          {"@EXPLICIT\nnumpy\n", ":2: this is not the URL of a package: numpy"},
          {"# platform: osx-64\n@EXPLICIT\n", ":1: this list is for osx-64, and this machine is linux-64"},
          {"@EXPLICIT\nhttps://x/osx-64/a-1-0.conda\n", ":2: this package is for osx-64"},
          {"@EXPLICIT\n", ": there is no package in this list"}}) {
        const auto file = directory.write("list.txt", text);
        const auto locked = read_locked(file, SpecKind::conda_explicit, "linux-64");
        ASSERT_FALSE(locked) << text;
        EXPECT_TRUE(to_string(locked.error()).starts_with(file.string() + message))
            << to_string(locked.error());
    }
}

} // namespace
} // namespace containerize::spec
