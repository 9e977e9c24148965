#include "good.h"
#include "util/own_process.h"
#include "util/redact.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

namespace {

using test::error_of;

TEST(InOwnProcess, ChangesNothingHere) {
    const auto parent = getpid();
    const mode_t before = umask(022);
    EXPECT_TRUE(in_own_process([parent]() -> Status {
        umask(077);
        if (getpid() == parent) return fail({.what = "it is the same process"});
        return {};
    }));
    EXPECT_EQ(umask(before), 022U);
}

TEST(InOwnProcess, ReturnsErrorsWithoutSecrets) {
    const auto error = error_of(in_own_process([]() -> Status {
        remember_secret("known-here-only");
        return fail({.what = "what known-here-only",
                     .why = "why",
                     .where = "file:1",
                     .hint = "a\nb",
                     .fault = Fault::input});
    }));
    EXPECT_EQ(error.what, "what ****");
    EXPECT_EQ(error.why, "why");
    EXPECT_EQ(error.where, "file:1");
    EXPECT_EQ(error.hint, "a\nb");
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(error_of(in_own_process([]() -> Status { return fail({.what = "other"}); })).fault,
              Fault::failure);
}

TEST(InOwnProcess, TellsOfAnEndWithoutAnAnswer) {
    const auto error = error_of(in_own_process([]() -> Status {
        kill(getpid(), SIGKILL);
        return {};
    }));
    EXPECT_EQ(error.why, "by signal 9");
}

} // namespace

} // namespace containerize
