#include "environments/lock_check.h"
#include "good.h"

#include <gtest/gtest.h>

namespace containerize::environments {
namespace {

conda::InstalledPackage of_conda(const std::string& name, const std::string& version,
                                 const std::string& build) {
    conda::InstalledPackage package;
    package.record.name = name;
    package.record.version = version;
    package.record.build = build;
    return package;
}

pip::Distribution of_pip(const std::string& name, const std::string& version,
                         const std::string& commit = {}) {
    pip::Distribution distribution{.name = name, .version = version, .metadata = {}, .origin = {}};
    if (!commit.empty())
        distribution.origin = pip::Origin{
            .url = "https://h/r", .vcs = "git", .commit = commit, .subdirectory = {}, .sha256 = {}};
    return distribution;
}

spec::LockedPackage locked(const std::string& name, const std::string& version, const std::string& build,
                           const std::string& commit, bool directory = false) {
    return {.name = name, .version = version, .build = build, .commit = commit, .directory = directory};
}

TEST(LockCheck, WhatIsTheSameIsNotNamed) {
    spec::LockedEnvironment lock;
    lock.of_conda = {locked("a", "1.0", "0", ""), locked("numpy", "1.26.4", "py_0", "")};
    lock.of_pip = {{locked("Two_Three", "1.0", "", ""), locked("git", "1", "", "c0ffee"),
                    locked("numpy", "1.26.4", "", ""), locked("unknown", "", "", ""),
                    locked("mine", "0.1", "", "", true)}};
    const CondaContents contents{.packages = {of_conda("a", "1.0", "0"), of_conda("numpy", "1.26.4", "py_0")},
                                 .of_conda = {of_pip("numpy", "1.26.4")},
                                 .of_pip = {of_pip("two-three", "1.0.0"), of_pip("git", "1.0", "c0ffee"),
                                            of_pip("unknown", "7"), of_pip("mine", "0.2"),
                                            of_pip("of-a-script", "1")}};
    const auto same = check_against_lock(lock, contents, {of_pip("of-a-script", "1")}, "x.lock");
    EXPECT_TRUE(same) << to_string(same.error());
}

TEST(LockCheck, EachDifferenceIsNamed) {
    spec::LockedEnvironment lock;
    lock.of_conda = {locked("a", "1.0", "0", ""), locked("b", "1.0", "0", ""), locked("c", "1.0", "0", "")};
    lock.of_pip = {{locked("d", "1.0", "", ""), locked("e", "1.0", "", "c0ffee"), locked("f", "1.0", "", ""),
                    locked("g", "1.0", "", "")}};
    const CondaContents contents{
        .packages = {of_conda("a", "2.0", "0"), of_conda("b", "1.0", "1"), of_conda("extra", "1", "0")},
        .of_conda = {},
        .of_pip = {of_pip("d", "2.0"), of_pip("e", "1.0", "decade"), of_pip("g", "1.0", "c0ffee"),
                   of_pip("more", "3")}};
    EXPECT_EQ(to_string(test::error_of(check_against_lock(lock, contents, {}, "x.lock"))),
              "x.lock: the installed packages differ from the lock:\n"
              "- a: the lock has 1.0 (0), and 2.0 (0) is installed\n"
              "- b: the lock has 1.0 (0), and 1.0 (1) is installed\n"
              "- c: the lock has 1.0 (0), and nothing is installed\n"
              "- extra 1: it is not in the lock\n"
              "- d: the lock has 1.0, and 2.0 is installed\n"
              "- e: the lock has 1.0 (commit c0ffee), and 1.0 (commit decade) is installed\n"
              "- f: the lock has 1.0, and nothing is installed\n"
              "- g: the lock has 1.0, and 1.0 (commit c0ffee) is installed\n"
              "- more 3: it is not in the lock\n"
              "Lock the environment again, because the packages do not match their entries in the file.");
    lock.of_pip.reset();
    EXPECT_FALSE(to_string(check_against_lock(lock, contents, {}, "x.lock").error()).contains("more 3"))
        << "an older lock does not tell";
}

TEST(LockCheck, WhatHasNoNameIsFoundByItsUrl) {
    const auto from = [](const std::string& name, const std::string& url, const std::string& commit) {
        auto one = of_pip(name, "1.0", commit.empty() ? "c0ffee" : commit);
        one.origin->url = url;
        one.origin->commit = commit;
        return one;
    };
    const auto of_url = [](const std::string& url, const std::string& commit) {
        return spec::LockedPackage{.version = "1.0", .url = url, .commit = commit};
    };
    spec::LockedEnvironment lock;
    lock.of_pip = {{of_url("https://me@h/a.whl#sha256=aa", ""), of_url("https://h/b", "decade"),
                    locked("c", "1.0", "", "")}};
    CondaContents contents{
        .packages = {},
        .of_conda = {},
        .of_pip = {from("a", "https://h/a.whl", ""), from("b", "https://h/b", "decade"), of_pip("c", "1.0")}};
    const auto same = check_against_lock(lock, contents, {}, "x.lock");
    EXPECT_TRUE(same) << to_string(same.error());
    contents.of_pip = {from("a", "https://h/other.whl", ""), from("b", "https://h/b", "c0ffee"),
                       of_pip("c", "2.0")};
    const auto error = test::error_of(check_against_lock(lock, contents, {}, "x.lock"));
    EXPECT_EQ(error.why, "\n- https://h/a.whl: the lock has 1.0, and nothing is installed"
                         "\n- https://h/b: the lock has 1.0 (commit decade), and nothing is installed"
                         "\n- c: the lock has 1.0, and 2.0 is installed"
                         "\n- a 1.0: it is not in the lock\n- b 1.0: it is not in the lock");
}

TEST(LockCheck, AUrlCanBeWrittenInSeveralWays) {
    const std::pair<const char*, const char*> cases[] = {
        {"file:///data/a+b/@me/pkg/", "file:///data/a%2Bb/%40me/pkg"}, // pip encodes more of a path
        {"file://localhost/data/pkg", "file:///data/pkg"},
        {"file:///data/\xC3\xA9", "file:///data/%c3%a9"},
        {"HTTPS://Host:443/a.whl", "https://host/a.whl"},
        {"http://host:80", "http://host/"},
        {"https://[::1]:443/a.whl", "https://[::1]/a.whl"},
        {"https://host/a+b.whl", "https://host/a%2Bb.whl"},
    };
    const auto same = [](const std::string& locked, const std::string& installed) {
        auto there = of_pip("x", "1.0", "c0ffee");
        there.origin = pip::Origin{.url = installed, .commit = {}};
        spec::LockedEnvironment lock;
        lock.of_pip = {{{.version = "1.0", .url = locked}}};
        return check_against_lock(lock, {.packages = {}, .of_conda = {}, .of_pip = {there}}, {}, "x.lock")
            .has_value();
    };
    for (const auto& [one, other] : cases) {
        EXPECT_TRUE(same(one, other)) << one;
        EXPECT_TRUE(same(other, one)) << one;
    }
    EXPECT_FALSE(same("https://host:444/a.whl", "https://host/a.whl"));
    EXPECT_FALSE(same("http://host/a.whl", "https://host/a.whl"));
    EXPECT_FALSE(same("https://host:80/a.whl", "https://host/a.whl"));
    EXPECT_FALSE(same("https://host/A.whl", "https://host/a.whl"));
    EXPECT_FALSE(same("file:///data/A", "file:///data/a"));
    EXPECT_FALSE(same("file:///data/a", "https://data/a"));
}

TEST(LockCheck, RequirementsChangeNothingOfTheLock) {
    const std::vector<pip::Distribution> brought = {of_pip("a", "1.0"), of_pip("b", "1.0", "c0ffee"),
                                                    of_pip("c", "1.0")};
    CondaContents contents{.packages = {}, .of_conda = {}, .of_pip = brought};
    contents.of_pip.push_back(of_pip("d", "1.0"));
    EXPECT_TRUE(check_unchanged(brought, contents, "more.txt"));
    contents.of_pip = {of_pip("A", "2.0"), of_pip("b", "1.0", "decade")};
    contents.of_pip[1].origin->url += "#sha256=aa";
    EXPECT_EQ(
        to_string(test::error_of(check_unchanged(brought, contents, "more.txt"))),
        "more.txt: these requirements change packages of the lock:\n"
        "- a: the lock has 1.0, and 2.0 is installed\n"
        "- b: the lock has 1.0 from https://h/r (commit c0ffee), and 1.0 from https://h/r (commit decade) "
        "is installed\n"
        "- c: the lock has 1.0, and nothing is installed\n"
        "Remove these packages from the requirements, or lock the environment with them.");
}

} // namespace
} // namespace containerize::environments
