#include "../good.h"
#include "../happens.h"
#include "../temporary.h"
#include "core/interrupt.h"
#include "util/process.h"
#include "util/redact.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize {

namespace {

using test::TemporaryDirectory;
using namespace std::chrono_literals;

Command shell(std::string script) {
    return {.argv = {"sh", "-c", std::move(script)}};
}

bool is_gone(pid_t pid) {
    return kill(pid, 0) != 0;
}

} // namespace

TEST(Run, OutputOfBothStreamsInOrder) {
    std::vector<std::string> lines;
    auto command = shell("echo one; echo two >&2; printf 'three\\r\\nfour'");
    command.on_line = [&](std::string_view line) { lines.emplace_back(line); };
    const auto outcome = test::good(run(command));
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.output, "one\ntwo\nthree\r\nfour");
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three", "four"}));
}

TEST(Run, ExitCodes) {
    EXPECT_EQ(run(shell("exit 7"))->exit_code, 7);
    EXPECT_EQ(run(shell("kill -TERM $$"))->exit_code, 143);
}

TEST(Run, ASignalThatOnlyTheNewProcessGetsEndsOnlyThat) {
    catch_interrupts();
    static bool ask_to_end = false;
    pthread_atfork(nullptr, nullptr, [] {
        if (ask_to_end) kill(getpid(), SIGTERM);
    });
    ask_to_end = true;
    const auto outcome = run(shell("exit 7"));
    ask_to_end = false;
    EXPECT_EQ(test::good(outcome).exit_code, 128 + SIGTERM);
    pollfd told{.fd = interrupt_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&told, 1, 0), 0) << "its handler would have told us";
}

TEST(Run, SignalsThatAreIgnoredStaySo) {
    const auto before = std::signal(SIGHUP, SIG_IGN); // as by nohup
    EXPECT_EQ(run(shell("kill -HUP $$; exit 7"))->exit_code, 7);
    std::signal(SIGHUP, SIG_DFL);
    EXPECT_EQ(run(shell("kill -HUP $$; exit 7"))->exit_code, 128 + SIGHUP);
    std::signal(SIGHUP, before);
}

TEST(Run, StdinIsEmpty) {
    EXPECT_EQ(run(shell("cat; echo end"))->output, "end\n");
}

TEST(Run, KeepsTheLastMebibyte) {
    const auto outcome = run(shell("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"));
    EXPECT_EQ(outcome->output.size(), 1U << 20U);
    EXPECT_TRUE(outcome->output.ends_with("x\nend\n"));
}

TEST(Run, EnvironmentAndWorkingDirectory) {
    const TemporaryDirectory directory;
    auto command = shell("echo $ONLY ${HOME-none}; pwd");
    command.environment = Environment{{"ONLY", "this one"}, {"PATH", "/usr/bin:/bin"}};
    command.working_directory = directory.path();
    EXPECT_EQ(run(command)->output, "this one none\n" + directory.path().string() + "\n");
}

TEST(Run, ArgumentsArriveAsTheyAre) {
    Command command = shell({});
    command.argv = {"printf", "[%s]", "", "a b", "new\nline", "'\"$x`", "\xff"};
    EXPECT_EQ(run(command)->output, "[][a b][new\nline]['\"$x`][\xff]");
}

TEST(Run, WhatCannotBeStarted) {
    Command command = shell({});
    command.argv = {"no-such-program"};
    EXPECT_EQ(to_string(run(command).error()), "cannot start `no-such-program`: it is not on PATH");
    command.argv = {"/no/such"};
    EXPECT_EQ(to_string(run(command).error()), "cannot start `/no/such`: No such file or directory");
    command = shell("true");
    command.working_directory = "/no/such";
    EXPECT_TRUE(to_string(run(command).error()).starts_with("/no/such: cannot start `"))
        << to_string(run(command).error());
    command = shell("true");
    command.in_child = [] { return EPERM; };
    EXPECT_TRUE(to_string(run(command).error()).ends_with("Operation not permitted"));
}

TEST(Run, InChildRunsBeforeTheProgram) {
    auto command = shell("umask");
    command.in_child = [] {
        umask(0027);
        return 0;
    };
    EXPECT_EQ(run(command)->output, "0027\n");
}

TEST(Run, EndsThoughTheBackgroundHoldsItsOutput) {
    const auto start = std::chrono::steady_clock::now();
    const auto outcome = run(shell("sleep 100 & echo $!"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
    ASSERT_TRUE(outcome);
    const auto background = std::stoi(outcome->output);
    EXPECT_TRUE(test::happens([&] { return is_gone(background); }));
}

TEST(Run, GoesOnAfterTheChildClosedItsOutput) {
    const TemporaryDirectory directory;
    auto command = shell("exec >/dev/null 2>&1; sleep 0.3; touch done");
    command.working_directory = directory.path();
    EXPECT_TRUE(run(command)->ok());
    EXPECT_TRUE(fs::exists(directory / "done"));
}

TEST(Run, IsQuickForSmallPrograms) {
    // A busy machine delays some runs, but a pause in run() would delay all.
    auto fastest = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 20; ++i) {
        const auto start = std::chrono::steady_clock::now();
        ASSERT_TRUE(run(shell("exit 0"))->ok());
        fastest = std::min(fastest, std::chrono::steady_clock::now() - start);
    }
    EXPECT_LT(fastest, 100ms);
}

TEST(Run, NothingThatIsShownHasSecrets) {
    remember_secret("plover-8765");
    const std::string script = "echo plover-8765; echo https://me:pw@host >&2";
    std::vector<std::string> seen;
    const Command command = {.argv = {"sh", "-c", script},
                             .on_line = [&](std::string_view line) { seen.emplace_back(line); }};
    EXPECT_EQ(run(command)->output, "****\nhttps://****@host\n");
    EXPECT_EQ(seen, (std::vector<std::string>{"****", "https://****@host"}));
    const auto captured = capture(command);
    EXPECT_EQ(captured->output, "plover-8765\n") << "what a program was asked for is its answer";
    EXPECT_EQ(captured->errors, "https://****@host\n");
}

TEST(Capture, MoreThanTheLimitIsAnError) {
    const auto outcome = test::good(capture(shell("head -c 67108864 /dev/zero")));
    EXPECT_EQ(outcome.output.size(), 64U << 20U);
    EXPECT_EQ(to_string(test::error_of(capture(shell("exec cat /dev/zero")))),
              "cannot use the output of `sh -c 'exec cat /dev/zero'`: it is larger than 64 MiB");
}

TEST(Capture, StdoutAlone) {
    std::vector<std::string> lines;
    auto command = shell("echo out; echo err >&2; head -c 3000000 /dev/zero");
    command.on_line = [&](std::string_view line) { lines.emplace_back(line); };
    const auto outcome = test::good(capture(command));
    EXPECT_EQ(outcome.output.size(), 3'000'004U);
    EXPECT_EQ(outcome.errors, "err\n");
    EXPECT_EQ(lines, std::vector<std::string>{"err"});
}

// The process group dies with its parent; here the parent is a separate process that is killed.
TEST(Run, ChildrenDieWithTheirParent) {
    const TemporaryDirectory directory;
    const pid_t parent = fork();
    if (parent == 0) {
        auto command = shell("sleep 100 & echo $! > background; echo $$ > leader; wait");
        command.working_directory = directory.path();
        [[maybe_unused]] const auto outcome = run(command);
        _exit(0);
    }
    const auto read_pid = [&](const char* name) {
        const auto text = read_file(directory / name);
        return text && text->ends_with('\n') ? std::stoi(*text) : 0;
    };
    EXPECT_TRUE(test::happens([&] { return read_pid("leader") != 0; }));
    const pid_t leader = read_pid("leader");
    const pid_t background = read_pid("background");
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    ASSERT_GT(leader, 0);
    EXPECT_TRUE(test::happens([&] { return is_gone(leader); }));
    EXPECT_TRUE(test::happens([&] { return is_gone(background); }));
}

namespace {

/// Runs `script` and interrupts it, in a process of its own because the interrupt flag stays set. Returns 0
/// if run() reported the interrupt, and the seconds it took.
std::pair<int, std::chrono::duration<double>> interrupt(const std::string& script,
                                                        const fs::path& directory) {
    const pid_t builder = fork();
    if (builder == 0) {
        catch_interrupts();
        auto command = shell(script);
        command.working_directory = directory;
        const auto outcome = run(command);
        const bool right = !outcome && to_string(outcome.error()) == "interrupted" && interrupted() &&
                           interrupt_signal() == SIGINT && !run(shell("touch later"));
        _exit(right ? 0 : 1);
    }
    EXPECT_TRUE(test::happens([&] { return fs::exists(directory / "started"); }));
    const auto start = std::chrono::steady_clock::now();
    kill(builder, SIGINT);
    int status = 0;
    waitpid(builder, &status, 0);
    return {status, std::chrono::steady_clock::now() - start};
}

} // namespace

TEST(Interrupt, EndsTheGroupPolitely) {
    // Not after the time that is given to those that do not listen. A busy machine may be as slow once.
    auto fastest = std::chrono::duration<double>::max();
    for (int i = 0; i < 5 && fastest >= 3s; ++i) {
        const TemporaryDirectory directory;
        const auto [status, took] =
            interrupt("trap 'touch asked; exit 1' TERM; touch started; sleep 100 & wait", directory.path());
        EXPECT_EQ(status, 0);
        EXPECT_TRUE(fs::exists(directory / "asked"));
        fastest = std::min(fastest, took);
    }
    EXPECT_LT(fastest, 3s);
}

TEST(Interrupt, IsSeenThoughTheCallerBlocksIt) {
    const TemporaryDirectory directory;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const auto status = interrupt("touch started; exec sleep 100", directory.path()).first;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(status, 0);
}

TEST(Interrupt, KillsWhatDoesNotListen) {
    const TemporaryDirectory directory;
    const auto [status, took] =
        interrupt("trap '' TERM; touch started; while :; do sleep 1; done", directory.path());
    EXPECT_EQ(status, 0);
    EXPECT_GT(took, 4s);
}

TEST(Interrupt, IsSeenThroughEndlessOutput) {
    const TemporaryDirectory directory;
    EXPECT_EQ(interrupt("touch started; exec yes", directory.path()).first, 0);
}

namespace {

/// Runs `script` in the foreground of a process of its own, sends that process alone the signals `numbers`,
/// and returns its exit code: 1 if it reported the interrupt.
int interrupt_in_foreground(const std::string& script, const std::vector<int>& numbers, Keyboard keyboard,
                            const fs::path& directory) {
    const pid_t process = fork();
    if (process == 0) {
        catch_interrupts();
        auto command = shell(script);
        command.working_directory = directory;
        const auto code = run_in_foreground(command, keyboard);
        _exit(code ? *code : 1);
    }
    EXPECT_TRUE(test::happens([&] { return fs::exists(directory / "started"); }));
    for (const int number : numbers)
        kill(process, number);
    int status = 0;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST(Foreground, SignalsThatOnlyWeGetArePassedOn) {
    for (const auto& [number, name] : {std::pair(SIGTERM, "TERM"), std::pair(SIGHUP, "HUP")})
        for (const auto keyboard : {Keyboard::for_program, Keyboard::interrupts_us}) {
            const auto script = std::string("trap 'exit 7' ") + name +
                                "; touch started; while [ ! -e never ]; do sleep 0.01; done";
            const int expected = keyboard == Keyboard::for_program ? 7 : 1;
            for (const auto& numbers : {std::vector{number}, std::vector{SIGINT, number}}) {
                const TemporaryDirectory directory;
                EXPECT_EQ(interrupt_in_foreground(script, numbers, keyboard, directory.path()), expected);
            }
        }
}

TEST(FindProgram, FirstExecutableOnThePath) {
    const TemporaryDirectory directory;
    const auto first = directory.write("one/prog", "");
    const auto second = directory.write("two/prog", "");
    const auto third = directory.write("three/prog", "");
    chmod(second.c_str(), 0755);
    chmod(third.c_str(), 0755);
    fs::create_directories(directory / "zero/prog");
    const auto root = directory.path().string();
    const auto path = ":.:" + root + "/zero:" + root + "/one:" + root + "/two:" + root + "/three";
    EXPECT_EQ(find_program("prog", path), second);
    EXPECT_EQ(find_program("prog", path, [&](const fs::path& p) { return p != second; }), third);
    EXPECT_EQ(find_program("absent", path), std::nullopt);
    EXPECT_EQ(find_program("sh", ""), std::nullopt);
}

TEST(Run, ProgramsHaveTheUsersLimitOfCoreDumps) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
    limit.rlim_max = std::max<rlim_t>(limit.rlim_max, 4096);
    if (setrlimit(RLIMIT_CORE, &limit) != 0) GTEST_SKIP() << "only root may allow core dumps again";
    for (const rlim_t of_user : {4096, 0}) {
        limit.rlim_cur = of_user;
        ASSERT_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
        remember_secret("a-secret-of-this-process");
        ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
        EXPECT_EQ(limit.rlim_cur, 1U) << "with 0 a program may still get it (core(5))";
        const auto outcome = test::good(run(shell("ulimit -c")));
        EXPECT_EQ(outcome.output != "0\n", of_user != 0);
    }
}

TEST(Tail, LastLinesIndented) {
    EXPECT_EQ(tail("a\nb\nc\n", 2), "  b\n  c");
    EXPECT_EQ(tail("a\nb", 5), "  a\n  b");
    EXPECT_EQ(tail("\n", 5), "");
    EXPECT_EQ(tail("a", 0), "");
    EXPECT_EQ(tail("\n\na", 2), "  \n  a");
}

} // namespace containerize
