#include "launch/launch_rules.h"
#include "temporary.h"
#include "util/process.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::launch {
namespace {

using Kind = EnvironmentChange::Kind;
using Texts = std::vector<std::string>;
using test::TemporaryDirectory;
using namespace std::string_literals;

TEST(ChooseTarget, IsThePathOfTheCallIfThatIsTheWrapper) {
    const TemporaryDirectory directory;
    const auto at = [&](const std::string& name) { return (directory / name).string(); };
    Call call;
    call.program = directory.write("env/bin/python", "the wrapper").string();
    call.prefix = at("env");
    ASSERT_EQ(stat(call.program.c_str(), &call.self), 0);
    directory.write("script", "#!" + call.program);
    fs::create_hard_link(call.program, at("env/bin/python3"));
    fs::create_directory_symlink("env", at("alias"));
    fs::create_directories(at("env-beside/bin"));
    fs::create_symlink(call.program, at("env-beside/bin/python3.11"));
    const auto before = fs::current_path();
    fs::current_path(at("env/bin")); // where names without a directory are nobody's
    const struct {
        const char* executed;
        const char* first_argument;
        const char *target, *name;
        bool through_prefix;
    } cases[] = {
        {"env/bin/python", "python", "env/bin/python", "python", true},
        {"env/bin/python3", "python", "env/bin/python3", "python3", true},
        {"alias/bin/python3", "python3", "alias/bin/python3", "python3", true},
        // A venv's link.
        {"env-beside/bin/python3.11", "python", "env-beside/bin/python3.11", "python3.11", false},
        // The interpreter of a script.
        {"script", "/env-beside/bin/python3.11", "env-beside/bin/python3.11", "python3.11", false},
        {"script", "python3", "env/bin/python", "python", true},
        {"script", "/script", "env/bin/python", "python", true},
        {"script", nullptr, "env/bin/python", "python", true},
        {nullptr, nullptr, "env/bin/python", "python", true},
    };
    for (const auto& one : cases) {
        const auto executed = at(one.executed != nullptr ? one.executed : "");
        std::string first = one.first_argument != nullptr ? one.first_argument : "";
        if (first.starts_with('/')) first = directory.path().string() + first;
        choose_target(call, one.executed != nullptr ? executed.c_str() : nullptr,
                      one.first_argument != nullptr ? first.c_str() : nullptr);
        EXPECT_EQ(call.target, at(one.target)) << executed << " " << first;
        EXPECT_EQ(call.name, one.name) << executed << " " << first;
        EXPECT_EQ(call.through_prefix, one.through_prefix) << executed << " " << first;
    }
    fs::current_path(before);
}

struct Launched {
    std::string variables; ///< those that are set, in the order of the environment
    bool sourced = false;  ///< whether the scripts of the plan follow
};

/// What an installation at /env makes of these variables. It sets A in its activation, and B after that.
Launched launched(const Call& call, const Texts& environment, const std::vector<EnvironmentChange>& root) {
    std::vector<const char*> given;
    for (const auto& one : environment)
        given.push_back(one.c_str());
    given.push_back(nullptr);
    Variables variables(given.data());
    LaunchPlan plan;
    plan.root = root;
    plan.activation = {{Kind::prepend, "PATH", "/env/bin"}, {Kind::set, "A", "on"}};
    plan.scripts = {"/env/activate.sh"};
    plan.environment = {{Kind::set, "B", "on"}};
    Launched result;
    result.sourced = prepare_environment(variables, call, plan) == plan.scripts;
    for (const char* one : variables.pointers())
        if (one != nullptr) result.variables += (result.variables.empty() ? "" : " ") + std::string(one);
    return result;
}

TEST(PrepareEnvironment, ActivatesUnlessAnotherVenvIsActive) {
    const std::string activated = "PATH=/env/bin:/bin A=on B=on CONTAINERIZE_PREFIX=/env";
    const std::string plain = "PATH=/bin B=on CONTAINERIZE_PREFIX=/env";
    const auto with = [](const std::string& text, const std::string& more) {
        return std::string(text).insert(text.find(' '), " " + more);
    };
    const struct {
        const char* name;
        bool through_prefix;
        Texts more;
        std::string expected;
    } cases[] = {
        {"python", true, {}, activated},
        {"python", false, {}, plain},
        {"python", true, {"VIRTUAL_ENV=/venv"}, with(plain, "VIRTUAL_ENV=/venv")},
        {"python", true, {"VIRTUAL_ENV="}, with(activated, "VIRTUAL_ENV=")},
        {"python", true, {"VIRTUAL_ENV=/env"}, with(activated, "VIRTUAL_ENV=/env")},
        {"python", true, {"CW_NO_CONDA_ACTIVATE=1"}, with(plain, "CW_NO_CONDA_ACTIVATE=1")},
        {"python", false, {"CW_FORCE_CONDA_ACTIVATE=1"}, with(activated, "CW_FORCE_CONDA_ACTIVATE=1")},
        {"_debug_exec", true, {"VIRTUAL_ENV=/venv"}, with(activated, "VIRTUAL_ENV=/venv")},
        {"_debug_shell", false, {}, activated},
        {"_debug_shell", true, {"CW_NO_CONDA_ACTIVATE="}, with(plain, "CW_NO_CONDA_ACTIVATE=")},
    };
    for (const auto& one : cases) {
        Call call;
        call.prefix = "/env";
        call.name = one.name;
        call.through_prefix = one.through_prefix;
        Texts environment = {"PATH=/bin"};
        environment.insert(environment.end(), one.more.begin(), one.more.end());
        const auto result = launched(call, environment, {});
        EXPECT_EQ(result.variables, one.expected);
        EXPECT_EQ(result.sourced, one.expected.contains("A=on"));
    }
}

TEST(PrepareEnvironment, OfAnotherInstallationIsReplaced) {
    Call call;
    call.prefix = "/env";
    EXPECT_EQ(
        launched(call, {"VIRTUAL_ENV=/other", "CONTAINERIZE_PREFIX=/other", "PATH=/other/bin"}, {}).variables,
        "VIRTUAL_ENV=/other CONTAINERIZE_PREFIX=/env PATH=/env/bin:/other/bin A=on B=on");
}

TEST(PrepareEnvironment, TheDefaultOfAMissingPathIsKept) {
    Call call;
    call.prefix = "/env";
    EXPECT_EQ(launched(call, {}, {}).variables,
              "PATH=/env/bin:/usr/bin:/bin A=on B=on CONTAINERIZE_PREFIX=/env");
}

TEST(PrepareEnvironment, TheRootComesFirst) {
    Call call;
    call.prefix = "/env";
    const std::vector<EnvironmentChange> root = {{Kind::set, "PATH", "/base"}, {Kind::set, "A", "base"}};
    EXPECT_EQ(launched(call, {"PATH=/bin"}, root).variables,
              "PATH=/env/bin:/base A=on B=on CONTAINERIZE_PREFIX=/env");
    EXPECT_EQ(launched(call, {"PATH=/venv/bin:/bin", "VIRTUAL_ENV=/venv"}, root).variables,
              "PATH=/venv/bin:/base VIRTUAL_ENV=/venv A=base B=on CONTAINERIZE_PREFIX=/env");
}

TEST(WouldChangeInstallation, IfItInstallsAndNamesNoOtherPlace) {
    const struct {
        Texts words;
        bool changes;
    } cases[] = {
        {{"pip", "install", "six"}, true},
        {{"pip3.11", "uninstall", "-y", "six"}, true},
        {{"pip", "install", "--target=/x", "six"}, false},
        {{"pip", "install", "-t", "/x", "six"}, false},
        {{"pip", "install", "--targeted", "six"}, true},
        {{"pip", "list"}, false},
        {{"pip"}, false},
        {{"pipx", "install", "six"}, false},
        {{"python3", "-m", "pip", "install", "six"}, true},
        {{"python3", "-m", "pip", "install", "--user", "six"}, false},
        {{"python3", "-m", "venv", "install"}, false},
        {{"python3", "-m"}, false},
        {{"python3"}, false},
        {{"conda", "install", "six"}, true},
        {{"mamba", "update", "--all"}, true},
        {{"micromamba", "remove", "-n", "mine", "six"}, false},
        {{"conda", "create", "six"}, false},
        {{"conda"}, false},
        {{"installer", "install"}, false},
    };
    for (auto one : cases) {
        std::vector<char*> argv;
        for (auto& word : one.words)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        EXPECT_EQ(would_change_installation(one.words[0], argv.data()), one.changes)
            << testing::PrintToString(one.words);
    }
}

TEST(CodeToSource, ScriptsSeeNoArgumentsAndTheProgramAll) {
    const TemporaryDirectory directory;
    const auto first = directory.write("it's one.sh", "export COUNT=$#\n");
    const auto second = directory.write("$two.sh", "export COUNT=\"$COUNT and $#\"\n");
    const auto done =
        run({.argv = {"bash", "-c", code_to_source({first.string(), second.string()}), "containerize",
                      "its name", "/bin/bash", "-c", R"(head -c 9 /proc/$$/cmdline; echo "$0|$1|$2|$COUNT")",
                      "zero", "a b", "*"}});
    ASSERT_TRUE(done && done->ok());
    EXPECT_EQ(done->output, "its name\0zero|a b|*|0 and 0\n"s);
}

TEST(FindCommand, TakesTheFirstExecutableFile) {
    const TemporaryDirectory directory;
    const auto at = [&](const std::string& name) { return (directory / name).string(); };
    for (const char* name : {"two/tool", "three/tool"})
        ASSERT_EQ(chmod(directory.write(name, "").c_str(), 0755), 0);
    directory.write("one/tool", "");
    fs::create_directories(at("zero/tool"));
    const std::string all = "PATH=" + at("zero") + ":" + at("one") + ":" + at("two") + ":" + at("three");
    const auto found = [](const std::string& entry, std::string_view command) {
        const char* const environment[] = {entry.c_str(), nullptr};
        return find_command(command, Variables(environment));
    };
    EXPECT_EQ(found(all, "tool"), at("two/tool"));
    EXPECT_EQ(found(all, "absent"), "");
    EXPECT_EQ(found("NO_PATH=1", "sh"), "/usr/bin/sh");
    EXPECT_EQ(found("PATH=/no-such-directory", "sh"), "");
    // An empty element is the working directory.
    const auto before = fs::current_path();
    fs::current_path(at("two"));
    EXPECT_EQ(found("PATH=/no-such-directory:", "tool"), "tool");
    fs::current_path(before);
}

TEST(VariablesOfSession, AreOnlyThoseThatItUses) {
    setenv("MY_TOKEN", "secret", 1);
    setenv("CONTAINERIZE_BIND", "/a:/b", 1);
    unsetenv("CONTAINERIZE_STAGE");
    const auto variables = variables_of_session();
    const auto has = [&](const std::string& start) {
        return std::ranges::any_of(variables, [&](const auto& one) { return one.starts_with(start); });
    };
    EXPECT_TRUE(has("CONTAINERIZE_BIND=/a:/b"));
    EXPECT_FALSE(has("MY_TOKEN"));
    EXPECT_FALSE(has("PATH"));
    EXPECT_FALSE(has("CONTAINERIZE_STAGE"));
    unsetenv("CONTAINERIZE_BIND");
}

} // namespace
} // namespace containerize::launch
