#include "../good.h"
#include "../temporary.h"
#include "environments/environ_script.h"

#include <gtest/gtest.h>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;
using test::TemporaryDirectory;

std::string shown(const std::vector<EnvironmentChange>& changes) {
    static constexpr const char* kinds[] = {"set", "unset", "prepend", "append"};
    std::string text;
    for (const auto& change : changes)
        text += std::string(kinds[static_cast<std::size_t>(change.kind)]) + " " + change.name + "=" +
                change.value + "\n";
    return text;
}

struct Case {
    Environment before, after;
    std::string expected;
};

TEST(EnvironScript, DifferenceIsWhatChanged) {
    const Case cases[] = {
        {{{"A", "1"}}, {{"A", "1"}}, ""},
        {{}, {{"A", "1"}}, "set A=1\n"},
        {{{"A", "1"}}, {{"A", "2"}}, "set A=2\n"},
        {{{"A", "1"}}, {}, "unset A=\n"},
        {{{"P", "/x"}}, {{"P", "/a:/b:/x"}}, "prepend P=/a:/b\n"},
        {{{"P", "/x"}}, {{"P", "/x:/a"}}, "append P=/a\n"},
        {{{"P", "/x"}}, {{"P", "/a/x"}}, "set P=/a/x\n"},
        {{}, {{"P", "/a:"}}, "prepend P=/a\n"},
        {{}, {{"P", ":/a"}}, "append P=/a\n"},
        {{{"P", ""}}, {{"P", "/a:"}}, "prepend P=/a\n"},
        {{}, {{"SHLVL", "2"}, {"_", "x"}, {"PWD", "/"}, {"OLDPWD", "/"}}, ""},
        {{}, {{"D", "/data/env/share"}}, "set D=${prefix}/share\n"},
        {{}, {{"D", "/data/env"}}, "set D=${prefix}\n"},
        {{}, {{"D", "/data/env2:/old/data/env:/data/env"}}, "set D=/data/env2:/old/data/env:${prefix}\n"},
        {{}, {{"D", "-I/data/env/include -L'/data/env'"}}, "set D=-I/data/env/include -L'${prefix}'\n"},
    };
    for (const auto& [before, after, expected] : cases)
        EXPECT_EQ(shown(difference(before, after, "/data/env")), expected);
}

Result<std::vector<EnvironmentChange>> record(const TemporaryDirectory& directory,
                                              const std::string& script) {
    return record_script(directory.write("env's.sh", script), directory.path(),
                         {{"PATH", "/usr/bin:/bin"}, {"GONE", "x"}}, {});
}

TEST(EnvironScript, IsSourcedByBash) {
    const TemporaryDirectory directory;
    const auto changes = record(directory, "echo noise\nfunction f { :; }; export -f f\n"
                                           "export LINES_='one\ntwo' PATH=$PWD/tools:$PATH\nunset GONE\n");
    ASSERT_TRUE(changes) << to_string(changes.error());
    EXPECT_EQ(shown(*changes), "set LINES_=one\ntwo\nprepend PATH=${prefix}/tools\nunset GONE=\n");
}

TEST(EnvironScript, FailureHasItsReason) {
    const TemporaryDirectory directory;
    const auto failed = test::error_of(record(directory, "ls /nosuch-directory\n"));
    EXPECT_EQ(failed.what, "the script for --environ failed");
    EXPECT_TRUE(failed.why.contains("nosuch-directory"));
    EXPECT_FALSE(record(directory, "if then\n"));
}

TEST(EnvironScript, OneThatEndsTheShellIsRefused) {
    const TemporaryDirectory directory;
    EXPECT_EQ(test::error_of(record(directory, "export A=1\nexit 0\n")).what,
              "the script for --environ cannot be recorded");
}

} // namespace

} // namespace containerize::environments
