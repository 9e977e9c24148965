#include "../good.h"
#include "../temporary.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/variables.h"
#include "environments/byte_code_workers.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::environments {

namespace {

std::string real_python() {
    return test::good(find_program("python3", search_path(current_environment()))).string();
}

ByteCodeWorkers::Settings settings_for(const std::string& python, unsigned workers = 1) {
    return {.inside =
                [](std::vector<std::string> argv) {
                    return Command{.argv = std::move(argv), .working_directory = "/"};
                },
            .python = python,
            .workers = workers};
}

auto start(unsigned workers = 1) {
    return test::good(ByteCodeWorkers::start(settings_for(real_python(), workers)));
}

/// A Python whose compiler dies, waits, or cannot be asked twice, for sources with these paths.
fs::path strange_python(const test::TemporaryDirectory& directory) {
    const auto program = directory.write("python", "#!" + real_python() + R"(
import builtins, os, signal, sys
real_compile = compile
def strange_compile(source, path, *more):
    if path == 'dies':
        os.kill(os.getpid(), signal.SIGSEGV)
    if path == 'waits':
        signal.pause()
    if path == 'has no memory':
        raise MemoryError
    if path == 'writes':
        print('what is this', file=sys.stderr)
    return real_compile(source, path, *more)
builtins.compile = strange_compile
exec(sys.argv[sys.argv.index('-c') + 1], {})
)");
    chmod(program.c_str(), 0755);
    return program;
}

/// What a program prints that is there only as byte-code.
std::string output_of(const ByteCode& code) {
    const test::TemporaryDirectory directory;
    const auto file = directory.write("program.pyc", code.pyc);
    return test::good(capture({.argv = {real_python(), "-I", file.string()}})).output;
}

/// Some of the standard library's modules, by path.
std::map<std::string, std::string> modules() {
    const auto outcome =
        test::good(capture({.argv = {real_python(), "-c", "import os; print(os.__file__)"}}));
    std::map<std::string, std::string> found;
    std::error_code ignored;
    for (const auto& file : entries_in(fs::path(outcome.output).parent_path(), ignored))
        if (file.path().extension() == ".py" && found.size() < 120)
            found[file.path().string()] = test::good(read_file(file.path()));
    return found;
}

} // namespace

TEST(ByteCodeWorkers, MakesWholeFiles) {
    const auto workers = start();
    EXPECT_TRUE(workers->supported());
    const auto code = test::good(
        workers->compile("/a path/é.py", "import sys\nprint(__doc__, sys._getframe().f_code.co_filename)\n"));
    EXPECT_EQ(code.reason, "");
    EXPECT_EQ(output_of(code), "None /a path/é.py\n");
    EXPECT_EQ(code.pyc.substr(4, 4), std::string("\1\0\0\0", 4));

    const auto expected = test::good(capture(
        {.argv = {
             real_python(), "-c",
             "import importlib.util as u, sys; print(u.MAGIC_NUMBER.hex(), sys.implementation.cache_tag)"}}));
    EXPECT_EQ(workers->magic() + " " + workers->cache_tag() + "\n", expected.output);
}

TEST(ByteCodeWorkers, SayWhySourcesCannotBeCompiled) {
    const auto workers = start();
    const auto reason = [&](std::string_view source) {
        const auto code = test::good(workers->compile("x.py", source));
        EXPECT_EQ(code.pyc, "");
        return code.reason;
    };
    EXPECT_EQ(reason("print 'Python 2'\n").substr(0, 12), "SyntaxError:");
    EXPECT_NE(reason("# coding: no-such-codec\n"), "");
    EXPECT_NE(reason("x = '\xff'\n"), "");
    EXPECT_NE(reason(std::string_view("x\0y\n", 4)), "");
    EXPECT_NE(reason(std::string(10'000, '(')), "");
    EXPECT_EQ(reason(std::string((std::size_t{16} << 20U) + 1, '\n')), "it is larger than 16 MiB");
    EXPECT_EQ(output_of(test::good(workers->compile("x.py", "print(1)\n"))), "1\n");
}

TEST(ByteCodeWorkers, CompileLargeSources) {
    const auto workers = start();
    std::string source;
    while (source.size() < std::size_t{4} << 20U)
        source += "# a long line, so that no pipe holds all of them\n";
    EXPECT_EQ(output_of(test::good(workers->compile("x.py", source + "print('end')\n"))), "end\n");
    const std::string text(std::size_t{4} << 20U, 'x');
    EXPECT_GT(test::good(workers->compile("x.py", "x = '" + text + "'\n")).pyc.size(), text.size());
    EXPECT_EQ(output_of(test::good(workers->compile("empty.py", ""))), "");
}

TEST(ByteCodeWorkers, GiveTheSameBytesInAnyOrderAndInManyThreads) {
    auto sources = modules();
    ASSERT_GT(sources.size(), 50U);
    // Each depends on something that another leaves behind.
    sources["latin-9"] = "# coding: iso-8859-15\nx = '\xa4', 'kept', '{'\n";
    sources["sets 1"] = "def f(x): return x in {'some', 'words'}\ndef g(x): return x in {'some', 'words'}\n";
    sources["sets 2"] = "some = words = 1\n" + sources["sets 1"];
    sources["characters"] = "def f(x): return x == '}', x.k, x['{']\n";
    sources["warns"] = "x = '\\d'\nassert (x, 'always')\n";
    std::vector<std::string> order;
    for (const auto& [path, source] : sources)
        order.push_back(path);

    const auto workers = start(2);
    std::map<std::string, std::string> first;
    for (const auto& path : order)
        first[path] = test::good(workers->compile(path, sources[path])).pyc;
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed)
        threads.emplace_back([&, seed, mine = order]() mutable {
            std::ranges::shuffle(mine, std::minstd_rand(seed));
            for (const auto& path : mine) {
                const auto code = workers->compile(path, sources.at(path));
                ASSERT_TRUE(code);
                EXPECT_EQ(code->pyc == first.at(path), true) << path;
            }
        });
    threads.clear();
    const auto others = start();
    for (const auto* path : {"latin-9", "sets 1", "sets 2", "characters", "warns"})
        EXPECT_EQ(test::good(others->compile(path, sources[path])).pyc, first[path]) << path;
}

TEST(ByteCodeWorkers, DieForOneSourceOnly) {
    const test::TemporaryDirectory directory;
    const auto workers = test::good(ByteCodeWorkers::start(settings_for(strange_python(directory), 2)));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            const auto dead = workers->compile("dies", "print(1)\n");
            ASSERT_FALSE(dead);
            EXPECT_EQ(to_string(dead.error()),
                      "dies: cannot compile byte-code: Python ended with exit code 139");
            const auto code = workers->compile("lives", "print(1)\n");
            ASSERT_TRUE(code);
            EXPECT_NE(code->pyc, "");
        });
    threads.clear();
    // Its threads have ended, but not the interpreters.
    EXPECT_EQ(output_of(test::good(workers->compile("writes", "print(2)\n"))), "2\n");
    const auto error = test::error_of(workers->compile("has no memory", ""));
    EXPECT_TRUE(error.why.starts_with("Python ended with exit code 1\n")) << error.why;
    EXPECT_TRUE(error.why.ends_with("MemoryError")) << error.why;
}

TEST(ByteCodeWorkers, EndIfTheyHaveTooLittleMemory) {
    const test::TemporaryDirectory directory;
    // By a program of this machine: an emulator of another one ignores this limit.
    const auto limited =
        directory.write("python", "#!/bin/sh\nulimit -v 131072\nexec " + real_python() + " \"$@\"\n");
    chmod(limited.c_str(), 0755);
    const auto workers = test::good(ByteCodeWorkers::start(settings_for(limited)));
    std::string source = "x = [\n";
    while (source.size() < std::size_t{4} << 20U)
        source += "    y + 1,\n";
    const auto error = test::error_of(workers->compile("large.py", source + "]\n"));
    EXPECT_EQ(error.where, "large.py");
    EXPECT_NE(test::good(workers->compile("small.py", "x = 1\n")).pyc, "");
}

TEST(ByteCodeWorkers, DoNotWaitForever) {
    const test::TemporaryDirectory directory;
    auto settings = settings_for(strange_python(directory));
    settings.limit = std::chrono::seconds(3);
    const auto workers = test::good(ByteCodeWorkers::start(settings));
    EXPECT_EQ(test::error_of(workers->compile("waits", "")).why, "Python takes longer than 3 seconds");
    EXPECT_NE(test::good(workers->compile("goes on", "")).pyc, "");
}

TEST(ByteCodeWorkers, StopAtInterrupts) {
    const test::TemporaryDirectory directory;
    const auto settings = settings_for(strange_python(directory));
    const pid_t builder = fork(); // interrupts are for whole processes
    if (builder == 0) {
        catch_interrupts();
        const auto workers = ByteCodeWorkers::start(settings);
        const std::jthread user([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            kill(getpid(), SIGINT);
        });
        const auto is_interrupted = [&](std::string_view path) {
            const auto code = (*workers)->compile(path, "");
            return !code && to_string(code.error()) == "interrupted";
        };
        _exit(workers && is_interrupted("waits") && is_interrupted("goes on") ? 0 : 1);
    }
    int status = 0;
    waitpid(builder, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(ByteCodeWorkers, IgnoreTheCallersVariablesAndDirectory) {
    const test::TemporaryDirectory directory;
    directory.write("warnings.py", "raise SystemExit('not this one')\n");
    directory.write("marshal.py", "raise SystemExit('not this one')\n");
    auto settings = settings_for(real_python());
    settings.inside = [&](std::vector<std::string> argv) {
        auto environment = current_environment();
        environment["PYTHONPATH"] = directory.path();
        environment["PYTHONOPTIMIZE"] = "2";
        environment["PYTHONWARNINGS"] = "error";
        environment["PYTHONHASHSEED"] = "7";
        return Command{
            .argv = std::move(argv), .environment = environment, .working_directory = directory.path()};
    };
    const auto workers = test::good(ByteCodeWorkers::start(settings));
    const std::string source = "'''Text'''\nassert True\nprint(__doc__, '\\d')\n";
    const auto code = test::good(workers->compile("x.py", source));
    EXPECT_EQ(output_of(code), "Text \\d\n");
    EXPECT_EQ(code.pyc, test::good(start()->compile("x.py", source)).pyc);
}

TEST(ByteCodeWorkers, TellIfPythonIsTooOldOrBroken) {
    const test::TemporaryDirectory directory;
    const auto program = directory.write("old", "#!/bin/sh\nprintf 'u1\\0\\0\\0\\0\\0\\0\\0\\0'\n");
    chmod(program.c_str(), 0755);
    const auto workers = test::good(ByteCodeWorkers::start(settings_for(program)));
    EXPECT_FALSE(workers->supported());
    EXPECT_TRUE(test::error_of(workers->compile("x.py", "")).why.starts_with("this Python always compares"));

    directory.write("broken", "#!/bin/sh\necho no libraries >&2\nexit 3\n");
    chmod((directory / "broken").c_str(), 0755);
    const auto broken = ByteCodeWorkers::start(settings_for(directory / "broken"));
    EXPECT_EQ(to_string(test::error_of(broken)),
              "the environment's Python does not run here: Python ended with exit code 3\n  no libraries");

    directory.write("strange", "#!/bin/sh\nprintf 'c0\\14\\0\\0\\0\\0\\0\\0\\0a70d0d0a ../x'\nsleep 100\n");
    chmod((directory / "strange").c_str(), 0755);
    EXPECT_FALSE(ByteCodeWorkers::start(settings_for(directory / "strange")));
    EXPECT_FALSE(ByteCodeWorkers::start(settings_for(directory / "missing")));
}

} // namespace containerize::environments
