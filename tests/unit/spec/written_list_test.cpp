#include "../good.h"
#include "../temporary.h"
#include "spec/written_list.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;
using Texts = std::vector<std::string>;

const std::string sha256_of_zlib(64, 'a'), sha256_of_app(64, 'b'), sha256_of_six(64, 'c');
const std::string commit_of_list(40, 'd');

conda::PackageRecord record(const std::string& name, const std::string& build, const std::string& subdir) {
    conda::PackageRecord record;
    record.name = name;
    record.version = "1.10";
    record.build = build;
    record.subdir = subdir;
    record.channel = "https://x.org/c";
    record.file_name = name + "-1.10-" + build + ".conda";
    record.url = "https://x.org/c/" + subdir + "/" + record.file_name;
    record.md5 = std::string(32, 'e');
    return record;
}

LockedPackage of_pip(const std::string& name, PipSource source) {
    return {.name = name, .version = "1.0", .source = std::move(source)};
}

LockedEnvironment environment() {
    LockedEnvironment environment;
    auto zlib = record("zlib", "h1_3", "linux-64");
    zlib.sha256 = sha256_of_zlib;
    zlib.build_number = 3;
    zlib.size = 77;
    auto app = record("app", "pyh_0", "noarch");
    app.sha256 = sha256_of_app;
    app.noarch = conda::Noarch::python;
    app.depends = {"zlib >=1.2", "zlib <2", "python", "blas * *mkl*"};
    environment.packages = {zlib, app};
    environment.channels = {"https://x.org/c"};
    environment.of_pip = {
        of_pip("Six", {.kind = PipSource::Kind::index,
                       .file = "six-1.0-py3-none-any.whl",
                       .url = "https://y.org/six-1.0-py3-none-any.whl",
                       .sha256 = sha256_of_six}),
        of_pip("repo", {.kind = PipSource::Kind::repository,
                        .url = "https://g.org/o/repo",
                        .vcs = "git",
                        .commit = commit_of_list,
                        .subdirectory = "py"}),
    };
    environment.pip = {{.text = "repo @ git+https://g.org/o/repo@" + commit_of_list + "#subdirectory=py"},
                       {.text = "Six==1.0 --hash=sha256:" + sha256_of_six}};
    return environment;
}

/// What our reader makes of the text.
LockedEnvironment read_back(const std::string& text, const std::string& name, SpecKind kind) {
    const TemporaryDirectory directory;
    const auto file = directory.write(name, text);
    EXPECT_EQ(recognise(text, name), kind);
    return test::good(read_locked(file, kind, {.subdir = "linux-64"}));
}

void expect_packages_of_conda(const LockedEnvironment& read) {
    ASSERT_EQ(read.packages.size(), 2U);
    EXPECT_EQ(read.packages[0].distribution(), "zlib-1.10-h1_3");
    EXPECT_EQ(read.packages[0].url, "https://x.org/c/linux-64/zlib-1.10-h1_3.conda");
    EXPECT_EQ(read.packages[0].sha256, sha256_of_zlib);
    EXPECT_EQ(read.packages[1].distribution(), "app-1.10-pyh_0");
    EXPECT_EQ(read.packages[1].subdir, "noarch");
    EXPECT_EQ(read.of_conda[0].version, "1.10");
}

Texts requirements_in(const LockedEnvironment& read) {
    Texts lines;
    for (const auto& line : read.pip)
        lines.push_back(line.text);
    return lines;
}

const Texts as_requirements = {"six @ https://y.org/six-1.0-py3-none-any.whl#sha256=" + sha256_of_six,
                               "repo @ git+https://g.org/o/repo@" + commit_of_list + "#subdirectory=py"};

TEST(WrittenList, OfCondaLockIsReadBack) {
    const auto list = written_list(environment(), "linux-64", SpecKind::conda_lock);
    EXPECT_EQ(list.notes, Texts());
    const auto read = read_back(list.text, "conda-lock.yml", SpecKind::conda_lock);
    expect_packages_of_conda(read);
    EXPECT_EQ(read.packages[0].md5, std::string(32, 'e'));
    EXPECT_EQ(read.packages[1].depends, (Texts{"blas * *mkl*", "python", "zlib >=1.2,<2"}));
    EXPECT_EQ(requirements_in(read), as_requirements);
    EXPECT_EQ(read.of_pip->at(1).commit, commit_of_list);
}

TEST(WrittenList, OfPixiIsReadBack) {
    const auto list = written_list(environment(), "linux-64", SpecKind::pixi_lock);
    EXPECT_EQ(list.notes, Texts());
    const auto read = read_back(list.text, "pixi.lock", SpecKind::pixi_lock);
    expect_packages_of_conda(read);
    EXPECT_EQ(read.packages[1].depends, (Texts{"zlib >=1.2", "zlib <2", "python", "blas * *mkl*"}));
    EXPECT_EQ(read.channels, Texts{"https://x.org/c/"});
    EXPECT_EQ(requirements_in(read), as_requirements);
    EXPECT_NE(list.text.find("  noarch: \"python\"\n"), std::string::npos);
    EXPECT_NE(list.text.find("  build_number: 3\n"), std::string::npos);
}

TEST(WrittenList, ExplicitHasThePackagesOfConda) {
    const auto list = written_list(environment(), "linux-64", SpecKind::conda_explicit);
    expect_packages_of_conda(read_back(list.text, "x.txt", SpecKind::conda_explicit));
    const std::string why = " 1.0 is left out: an explicit list contains only conda packages";
    EXPECT_EQ(list.notes, (Texts{"Six" + why, "repo" + why}));
    auto older = environment();
    older.of_pip.reset();
    older.packages[0].sha256.clear();
    const auto by_md5 = written_list(older, "linux-64", SpecKind::conda_explicit);
    EXPECT_EQ(by_md5.notes, Texts());
    EXPECT_NE(by_md5.text.find("/zlib-1.10-h1_3.conda#" + std::string(32, 'e') + "\n"), std::string::npos);
}

TEST(WrittenList, EnvironmentFileHasBuildsAndRequirements) {
    auto given = environment();
    given.variables = {{"SETTING", "no"}};
    const auto list = written_list(given, "linux-64", SpecKind::environment_yaml);
    EXPECT_EQ(list.notes, Texts());
    const TemporaryDirectory directory;
    const auto read = test::good(read_environment_yaml(directory.write("environment.yml", list.text)));
    EXPECT_EQ(recognise(list.text, "environment.yml"), SpecKind::environment_yaml);
    ASSERT_EQ(read.dependencies.size(), 2U);
    EXPECT_TRUE(read.dependencies[0].spec.matches(given.packages[0]));
    auto other = given.packages[0];
    other.version = "1.10.1";
    EXPECT_FALSE(read.dependencies[0].spec.matches(other));
    EXPECT_TRUE(read.no_defaults);
    ASSERT_EQ(read.pip.size(), 2U);
    EXPECT_EQ(read.pip[0].text, as_requirements[1]);
    EXPECT_EQ(read.pip[1].text, "Six==1.0");
    EXPECT_EQ(read.variables, given.variables);
}

TEST(WrittenList, SaysWhatItCannotContain) {
    auto given = environment();
    given.variables = {{"SETTING", "x"}};
    const PipSource without_address{.kind = PipSource::Kind::index, .file = "a.whl", .sha256 = sha256_of_six};
    given.of_pip = {
        of_pip("unknown", {}),
        of_pip("hidden", without_address),
        of_pip("variable", {.kind = PipSource::Kind::archive, .url = "https://y.org/${TOKEN}/a.whl"}),
        of_pip("mark", {.kind = PipSource::Kind::archive, .url = "https://y.org/t/****/a.whl"}),
        of_pip("query", {.kind = PipSource::Kind::archive, .url = "https://y.org/a.whl?key=****"}),
        of_pip("mine", {.kind = PipSource::Kind::directory, .url = "file:///tmp", .editable = true}),
    };
    const auto lock = written_list(given, "linux-64", SpecKind::conda_lock);
    Texts expected = {"the variable SETTING is left out: a conda-lock file contains only packages"};
    for (const char* name : {"unknown", "hidden", "variable", "mark", "query"})
        expected.push_back(std::string(name) +
                           " 1.0 is left out: its address is not known, or contains a secret");
    auto for_pixi = expected;
    for_pixi[0] = "the variable SETTING is left out: a pixi lock file contains only packages";
    expected.push_back("mine 1.0 is left out: a conda-lock file cannot name a directory");
    EXPECT_EQ(lock.notes, expected);
    EXPECT_EQ(read_back(lock.text, "conda-lock.yml", SpecKind::conda_lock).pip.size(), 0U);
    const auto pixi = written_list(given, "linux-64", SpecKind::pixi_lock);
    EXPECT_EQ(pixi.notes, for_pixi);
    EXPECT_EQ(requirements_in(read_back(pixi.text, "pixi.lock", SpecKind::pixi_lock)),
              Texts{"-e file:///tmp"});
}

TEST(WrittenList, QuotesWhatYamlWouldReadDifferently) {
    auto given = environment();
    given.packages[0].name = "on";
    given.packages[0].license = "a: \"b\" # c\nd";
    for (const auto kind : {SpecKind::conda_lock, SpecKind::pixi_lock}) {
        const auto list = written_list(given, "linux-64", kind);
        EXPECT_EQ(read_back(list.text, "x", kind).of_conda[0].name, "on");
    }
}

TEST(WrittenList, OurOwnLockHasTheSourcesOfPipsPackages) {
    auto given = environment();
    given.of_pip->push_back(
        of_pip("mine", {.kind = PipSource::Kind::directory, .url = "file:///tmp", .editable = true}));
    given.of_pip->push_back(of_pip("unknown", {}));
    given.of_pip->front().source.size = 12;
    const TemporaryDirectory directory;
    const auto file = directory.write("containerize.lock", lock_text(given, "linux-64"));
    const auto read = test::good(read_locked(file, SpecKind::lock, {.subdir = "linux-64"}));
    ASSERT_EQ(read.of_pip->size(), given.of_pip->size());
    for (std::size_t i = 0; i < given.of_pip->size(); ++i)
        EXPECT_EQ(read.of_pip->at(i).source, given.of_pip->at(i).source) << given.of_pip->at(i).name;
}

} // namespace
} // namespace containerize::spec
