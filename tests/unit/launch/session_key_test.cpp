#include "launch/session_key.h"
#include "users.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace containerize::launch {
namespace {

SessionIdentity some_identity() {
    return {.node = "0123456789ab",
            .user_namespace = 11,
            .mount_namespace = 12,
            .pid_namespace = 13,
            .root_device = 14,
            .root_inode = 15,
            .group = 16,
            .job = "pbs-1.server",
            .login = "session-5",
            .limits = "6=12 ",
            .native = false,
            .root = "0123456789abcdef"};
}

TEST(SessionKey, EachPartOfTheIdentityChangesIt) {
    using Change = std::function<void(SessionIdentity&)>;
    const std::array<Change, 11> changes = {
        [](auto& one) { one.node = "0123456789ac"; },
        [](auto& one) { one.user_namespace = 99; },
        [](auto& one) { one.mount_namespace = 99; },
        [](auto& one) { one.pid_namespace = 99; },
        [](auto& one) { one.root_device = 99; },
        [](auto& one) { one.root_inode = 99; },
        [](auto& one) { one.group = 99; },
        [](auto& one) { one.job = "pbs-2.server"; },
        [](auto& one) { one.limits = "6=13 "; },
        [](auto& one) { one.native = true; },
        [](auto& one) { one.root.clear(); },
    };
    std::set<std::string> names = {session_names(some_identity()).shared};
    for (const auto& change : changes) {
        auto identity = some_identity();
        change(identity);
        names.insert(session_names(identity).shared);
    }
    EXPECT_EQ(names.size(), changes.size() + 1);
}

TEST(SessionKey, TheLoginChangesOnlyTheNameThatIsForLogins) {
    const auto names = session_names(some_identity());
    auto identity = some_identity();
    identity.login = "session-6";
    EXPECT_EQ(session_names(identity).shared, names.shared);
    EXPECT_NE(session_names(identity).of_login, names.of_login);
    EXPECT_NE(names.of_login, names.shared);
    identity.login.clear();
    EXPECT_EQ(session_names(identity).of_login, "");
}

TEST(SessionKey, HasTheVersionOfThePlan) {
    const auto start = "v" + std::to_string(session_format) + "-";
    EXPECT_TRUE(session_names(some_identity()).shared.starts_with(start));
    EXPECT_TRUE(session_names(some_identity()).of_login.starts_with(start));
}

TEST(SessionKey, TellsTheRoot) {
    const auto names = session_names(some_identity());
    EXPECT_EQ(root_in_name(names.shared), "0123456789abcdef");
    EXPECT_EQ(root_in_name(names.of_login), "0123456789abcdef");
    auto identity = some_identity();
    identity.root.clear();
    EXPECT_EQ(root_in_name(session_names(identity).shared), "");
}

TEST(SessionKey, IsAFilesNameWhateverTheJobIsCalled) {
    auto identity = some_identity();
    identity.job = std::string(1000, 'x');
    const auto name = session_names(identity).of_login;
    EXPECT_LT(name.size(), 256U);
    identity.job = std::string(1000, 'y');
    EXPECT_NE(session_names(identity).of_login, name);
}

TEST(SessionKey, LinksOfSessionsAreTheNodes) {
    auto identity = some_identity();
    const auto link = inside_link_name(identity);
    EXPECT_TRUE(link.starts_with(inside_link_start + ("v" + std::to_string(session_format)) + "-"));
    identity.node = "another";
    EXPECT_NE(inside_link_name(identity), link);
    identity = some_identity();
    identity.mount_namespace = 99;
    EXPECT_NE(inside_link_name(identity), link);
}

/// The limits that a child has after `change`.
std::string limits_after(const std::function<bool()>& change) {
    return test::in_process([&] { return change() ? binding_limits() : "not changed"; });
}

bool set_limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
    return setrlimit(resource, &limit) == 0;
}

TEST(SessionKey, HardLimitsCountAndSoftOnesDoNot) {
    const auto usual = binding_limits();
    for (const auto resource : {RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIMIT_CPU,
                                RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE}) {
        rlimit now{};
        ASSERT_EQ(getrlimit(resource, &now), 0);
        EXPECT_EQ(limits_after([&] { return set_limit(resource, now.rlim_max / 2, now.rlim_max); }), usual)
            << resource;
        const auto lower = resource == RLIMIT_NOFILE ? rlim_t{100} : now.rlim_max / 2;
        const auto bound = limits_after([&] { return set_limit(resource, lower, lower); });
        EXPECT_NE(bound, usual) << resource;
        EXPECT_NE(bound, "not changed") << resource;
    }
    EXPECT_NE(limits_after([] { return nice(5) != -1; }), usual);
}

TEST(SessionKey, OwnIdentityFollowsTheEnvironment) {
    for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "OAR_JOB_ID",
                             "PJM_JOBID", "_CONDOR_SCRATCH_DIR", "CONTAINERIZE_ENGINE"})
        unsetenv(name);
    const auto usual = own_identity({});
    EXPECT_GT(usual.mount_namespace, 0U);
    EXPECT_GT(usual.pid_namespace, 0U);
    EXPECT_FALSE(usual.node.empty());
    EXPECT_EQ(usual.group, getegid());
    EXPECT_EQ(session_names(own_identity({})).shared, session_names(usual).shared);
    setenv("CONTAINERIZE_ENGINE", "native", 1);
    EXPECT_TRUE(own_identity({}).native);
    unsetenv("CONTAINERIZE_ENGINE");
    setenv("PBS_JOBID", "7.server", 1);
    EXPECT_NE(session_names(own_identity({})).shared, session_names(usual).shared);
    unsetenv("PBS_JOBID");
    EXPECT_EQ(own_identity("a root").root, "a root");
}

} // namespace
} // namespace containerize::launch
