#include "../temporary.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/redact.h"

#include <array>
#include <regex>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

namespace {

/// The lines of the log without their timestamps.
std::vector<std::string> lines(const fs::path& file) {
    std::vector<std::string> all;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
        all.push_back(std::regex_replace(
            line, std::regex(R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d  )"), "> "));
    return all;
}

} // namespace

TEST(Log, FileAndTerminal) {
    const test::TemporaryDirectory directory;
    const auto file = directory / "log";
    ASSERT_TRUE(log::open(file, log::Level::normal));
    EXPECT_EQ(log::current(), file);
    testing::internal::CaptureStderr();
    log::detail("d {}");
    log::info("i \x1b[2J");
    log::warn("w");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "i ?[2J\nwarning: w\n");

    ASSERT_TRUE(log::also(directory / "copy"));
    log::detail("later");
    const std::vector<std::string> expected = {"> d {}", "> i \x1b[2J", "> warning: w", "> later"};
    EXPECT_EQ(lines(file), expected);
    EXPECT_EQ(lines(directory / "copy"), expected);
}

TEST(Log, ACopyContinuesAcrossTheLogsOfAProcess) {
    const test::TemporaryDirectory directory;
    const auto copy = directory.write("copy", "of an earlier process\n");
    for (const auto* name : {"one", "two"}) {
        ASSERT_TRUE(log::open(directory / name, log::Level::quiet));
        log::detail(name);
        ASSERT_TRUE(log::also(copy));
    }
    log::detail("later");
    EXPECT_EQ(lines(copy), (std::vector<std::string>{"> one", "> two", "> later"}));
    EXPECT_EQ(lines(directory / "two"), (std::vector<std::string>{"> two", "> later"}));
}

// Like /dev/null, which root could otherwise replace.
TEST(Log, CopyInSpecialFile) {
    const test::TemporaryDirectory directory;
    const auto pipe = directory / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const Fd reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(log::open(directory / "log", log::Level::quiet));
    log::detail("before");
    ASSERT_TRUE(log::also(pipe));
    EXPECT_TRUE(fs::is_fifo(pipe));
    std::array<char, 256> buffer{};
    EXPECT_GT(read(reader.get(), buffer.data(), buffer.size()), 0);
    ASSERT_TRUE(log::open(directory / "log", log::Level::quiet));
}

TEST(Log, Levels) {
    const test::TemporaryDirectory directory;
    const auto said = [&](log::Level level) {
        EXPECT_TRUE(log::open(directory / "log", level));
        testing::internal::CaptureStderr();
        log::detail("d");
        log::info("i");
        log::warn("w");
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(said(log::Level::quiet), "warning: w\n");
    EXPECT_EQ(said(log::Level::normal), "i\nwarning: w\n");
    EXPECT_EQ(said(log::Level::verbose), "d\ni\nwarning: w\n");
}

TEST(Log, FileThatCannotBeWritten) {
    EXPECT_EQ(to_string(log::open("/proc/no/log", log::Level::normal).error()),
              "/proc/no/log: cannot write the log: No such file or directory");
}

TEST(Log, CommandsWithoutPasswords) {
    const test::TemporaryDirectory directory;
    const auto file = directory / "log";
    ASSERT_TRUE(log::open(file, log::Level::quiet));
    const Command command = {.argv = {"echo", "--index-url=https://me:secret@host/simple", "a b", ""}};
    ASSERT_TRUE(run(command));
    EXPECT_EQ(lines(file).front(), "> $ echo '--index-url=https://****@host/simple' 'a b' ''");
}

TEST(Log, HasNoSecrets) {
    const test::TemporaryDirectory directory;
    const auto file = directory / "log";
    ASSERT_TRUE(log::open(file, log::Level::verbose));
    remember_secret("frotz-9753");
    testing::internal::CaptureStderr();
    log::detail("frotz-9753 from https://me:pw@host");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "**** from https://****@host\n");
    EXPECT_EQ(lines(file), (std::vector<std::string>{"> **** from https://****@host"}));
}

TEST(Stage, PlainLines) {
    const test::TemporaryDirectory directory;
    ASSERT_TRUE(log::open(directory / "log", log::Level::normal));
    testing::internal::CaptureStderr();
    {
        Stage stage("Packing");
        stage.advance(1, 2);
        stage.detail("numpy");
        stage.finish("1,204 files");
    }
    { const Stage stage("Checking"); }
    const auto said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(
        std::regex_match(said, std::regex("Packing \\.\\.\\.\nPacking: 1,204 files in \\d\\.\\d s\n"
                                          "Checking \\.\\.\\.\nChecking: failed after \\d\\.\\d s\n")))
        << said;
}

TEST(Human, Numbers) {
    EXPECT_EQ(human_bytes(999), "999 B");
    EXPECT_EQ(human_bytes(1000), "1.0 kB");
    EXPECT_EQ(human_bytes(999'949), "999.9 kB");
    EXPECT_EQ(human_bytes(999'999), "1.0 MB");
    EXPECT_EQ(human_bytes(217'300'000), "217.3 MB");
    EXPECT_EQ(counted(1, "file"), "1 file");
    EXPECT_EQ(counted(1204, "file"), "1,204 files");
    EXPECT_EQ(counted(0, "file is", "files are"), "0 files are");
    EXPECT_EQ(human_count(7), "7");
    EXPECT_EQ(human_count(1204), "1,204");
    EXPECT_EQ(human_count(1'234'567), "1,234,567");
    EXPECT_EQ(human_seconds(0.44), "0.4 s");
    EXPECT_EQ(human_seconds(59.96), "1 min 00 s");
    EXPECT_EQ(human_seconds(185), "3 min 05 s");
    EXPECT_EQ(human_seconds(3725), "1 h 02 min");
}

} // namespace containerize
