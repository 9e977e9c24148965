#include "good.h"
#include "launch/carried_call.h"
#include "temporary.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace containerize::launch {
namespace {

CarriedCall example() {
    CarriedCall call;
    call.program = "/env/bin/python";
    call.target = "/venv/bin/python";
    call.through_prefix = false;
    call.arguments = {"python", "", "a b", "\xff", "line\nbreak"};
    call.environment = {"A=1", "EMPTY=", "no equals sign", "B=x=y"};
    call.plan.identity = "1:2";
    call.plan.prefix = "/env";
    call.plan.scripts = {"/env/etc/a.sh"};
    return call;
}

/// Like the programs through which a launch passes.
void announce(const Fd& file) {
    setenv(call_variable.name(), std::to_string(file.get()).c_str(), 1);
}

/// As another process, whose working directory is the root.
void resume_in_root(CarriedCall& call) {
    call.arguments = {"x"};
    auto packed = pack(call);
    ASSERT_TRUE(packed);
    std::filesystem::current_path("/");
    announce(*packed);
    [[maybe_unused]] const int taken_over = packed->release();
    ASSERT_TRUE(resume_call());
}

bool is_open(int descriptor) {
    return fcntl(descriptor, F_GETFD) >= 0;
}

class CarriedCallTest : public ::testing::Test {
protected:
    void SetUp() override { before_ = std::filesystem::current_path(); }
    void TearDown() override {
        std::filesystem::current_path(before_);
        unsetenv(call_variable.name());
    }
    std::filesystem::path before_;
};

TEST_F(CarriedCallTest, ArrivesAsItWas) {
    auto packed = test::good(pack(example()));
    EXPECT_EQ(fcntl(packed.get(), F_GETFD) & FD_CLOEXEC, 0);
    announce(packed);
    const int descriptor = packed.release();
    const auto call = test::good(resume_call());
    ASSERT_TRUE(call);
    EXPECT_EQ(call->program, example().program);
    EXPECT_EQ(call->target, example().target);
    EXPECT_FALSE(call->through_prefix);
    EXPECT_EQ(call->arguments, example().arguments);
    EXPECT_EQ(call->environment, example().environment);
    EXPECT_EQ(call->plan.prefix, "/env");
    EXPECT_EQ(call->plan.scripts, example().plan.scripts);
    EXPECT_FALSE(is_open(descriptor));
}

TEST_F(CarriedCallTest, NothingWasCarriedHere) {
    const auto call = test::good(resume_call());
    EXPECT_FALSE(call);
}

TEST_F(CarriedCallTest, TheProcessIsWhereItWas) {
    const test::TemporaryDirectory directory;
    std::filesystem::current_path(directory.path());
    std::signal(SIGUSR2, SIG_IGN);
    auto call = call_of_this_process();
    std::signal(SIGUSR2, SIG_DFL);
    EXPECT_EQ(call.directory, directory.path());
    EXPECT_GT(call.directory_fd, STDERR_FILENO);
    ASSERT_NO_FATAL_FAILURE(resume_in_root(call));
    EXPECT_EQ(std::filesystem::current_path(), directory.path());
    EXPECT_EQ(std::signal(SIGUSR2, SIG_DFL), SIG_IGN);
    EXPECT_FALSE(is_open(call.directory_fd));
}

TEST_F(CarriedCallTest, ADirectoryThatIsGoneIsKeptByItsDescriptor) {
    const test::TemporaryDirectory directory;
    const auto gone = directory / "gone";
    std::filesystem::create_directory(gone);
    std::filesystem::current_path(gone);
    std::filesystem::remove(gone);
    auto call = call_of_this_process();
    ASSERT_NO_FATAL_FAILURE(resume_in_root(call));
    std::error_code failed;
    EXPECT_TRUE(std::filesystem::current_path(failed).empty()) << "it has no name any more";
}

TEST_F(CarriedCallTest, WhatIsNotWholeIsRefused) {
    auto packed = test::good(pack(example()));
    const auto size = lseek(packed.get(), 0, SEEK_END);
    for (const off_t cut : {size - 1, size / 2, off_t{5}, off_t{0}}) {
        ASSERT_EQ(ftruncate(packed.get(), cut), 0);
        announce(packed);
        const auto call = resume_call();
        ASSERT_FALSE(call) << cut;
        EXPECT_TRUE(call.error().hint.contains("unset"));
    }
    for (const char* nonsense : {"", "x", "-1", "99999"}) {
        setenv(call_variable.name(), nonsense, 1);
        EXPECT_FALSE(resume_call()) << nonsense;
    }
}

} // namespace
} // namespace containerize::launch
