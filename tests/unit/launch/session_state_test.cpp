#include "good.h"
#include "launch/session_state.h"
#include "temporary.h"

#include <csignal>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::launch {
namespace {

class SessionState : public testing::Test {
protected:
    void SetUp() override {
        state_.path = directory_.path();
        state_.fd.reset(open(state_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    [[nodiscard]] std::string lock_of(const std::string& name) const {
        return directory_.write(fs::path(name) / lock_name, "");
    }
    [[nodiscard]] const StateDirectory& state() const { return state_; }
    [[nodiscard]] const fs::path& path() const { return directory_.path(); }

private:
    test::TemporaryDirectory directory_;
    StateDirectory state_;
};

/// A process that holds a session's lock.
class Supervisor {
public:
    /// `namespaces`: new ones that it is in. `ends`: it lets nobody in any more.
    explicit Supervisor(const std::string& lock, int namespaces = 0, bool ends = false) {
        int ends_of_pipe[2];
        EXPECT_EQ(pipe(ends_of_pipe), 0);
        pid_ = static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0));
        if (pid_ < 0) throw std::runtime_error("clone");
        if (pid_ == 0) {
            const Fd file(open(lock.c_str(), O_RDWR | O_CLOEXEC));
            if (!lock_byte(file.get(), supervisor_byte, F_WRLCK)) _exit(1);
            if (ends && !lock_byte(file.get(), entering_byte, F_WRLCK)) _exit(1);
            if (write(ends_of_pipe[1], "x", 1) == 1) pause();
            _exit(1);
        }
        close(ends_of_pipe[1]);
        char told = 0;
        EXPECT_EQ(read(ends_of_pipe[0], &told, 1), 1);
        close(ends_of_pipe[0]);
    }
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;
    ~Supervisor() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    pid_t pid_ = 0;
};

TEST_F(SessionState, ASessionIsDeadIfNobodyHoldsItsLock) {
    fs::create_directory(path() / "without");
    EXPECT_TRUE(is_dead(state(), "without"));
    const auto lock = lock_of("session");
    EXPECT_TRUE(is_dead(state(), "session"));
    {
        const Supervisor supervisor(lock);
        EXPECT_FALSE(is_dead(state(), "session"));
    }
    EXPECT_TRUE(is_dead(state(), "session"));
}

TEST_F(SessionState, ALauncherFindsTheSessionOfItsIdentity) {
    for (const std::string root : {"", "0123456789abcdef"}) {
        const auto lock = lock_of(session_names(own_identity(root)).shared);
        EXPECT_FALSE(find_session(state(), root));
        {
            const Supervisor supervisor(lock);
            const auto session = test::good(find_session(state(), root));
            EXPECT_EQ(session.supervisor, supervisor.pid());
            EXPECT_FALSE(session.inside);
            EXPECT_FALSE(find_session(state(), root + "f")) << "that is another root";
        }
        EXPECT_FALSE(find_session(state(), root));
    }
}

TEST_F(SessionState, ASessionThatEndsOrIsAContainersIsNotFound) {
    const auto lock = lock_of(session_names(own_identity("")).shared);
    {
        const Supervisor ending(lock, 0, true);
        EXPECT_FALSE(find_session(state(), ""));
    }
    const Supervisor contained(lock, CLONE_NEWUSER | CLONE_NEWPID);
    EXPECT_FALSE(find_session(state(), ""));
}

TEST_F(SessionState, AProcessInsideFindsItsOwnSession) {
    const std::string root = "0123456789abcdef", name = std::string("session") + root_separator + root;
    const auto lock = lock_of(name);
    {
        const Supervisor supervisor(lock);
        EXPECT_FALSE(find_session(state(), ""));
        fs::create_symlink(name, path() / inside_link_name(own_identity("")));
        for (const std::string& wanted : {std::string(), root}) {
            const auto session = test::good(find_session(state(), wanted));
            EXPECT_EQ(session.supervisor, supervisor.pid());
            EXPECT_TRUE(session.inside);
        }
        EXPECT_FALSE(find_session(state(), "another")) << "its root cannot be changed";
    }
    EXPECT_FALSE(find_session(state(), ""));
}

TEST_F(SessionState, WhatCannotBeAskedAboutIsAlive) {
    // A lock that is not a file tells nothing.
    fs::create_directories(path() / "odd" / lock_name);
    EXPECT_FALSE(is_dead(state(), "odd"));
    fs::create_symlink("elsewhere", path() / "loop");
    EXPECT_TRUE(is_dead(state(), "loop"));
    const auto lock = lock_of("linked");
    fs::rename(lock, path() / "lock of another");
    fs::create_symlink(path() / "lock of another", lock);
    EXPECT_FALSE(is_dead(state(), "linked"));
}

/// Root's state is in /run/containerize. If the tests run as root, this makes them another user for its
/// lifetime.
class Unprivileged {
public:
    explicit Unprivileged(const fs::path& directory) {
        if (geteuid() != 0) return;
        EXPECT_EQ(chown(directory.c_str(), nobody, nobody), 0);
        EXPECT_EQ(seteuid(nobody), 0);
        changed_ = true;
    }
    Unprivileged(const Unprivileged&) = delete;
    Unprivileged& operator=(const Unprivileged&) = delete;
    ~Unprivileged() {
        if (changed_) {
            EXPECT_EQ(seteuid(0), 0);
        }
    }

private:
    static constexpr uid_t nobody = 65534;
    bool changed_ = false;
};

TEST_F(SessionState, LiesInAPrivateDirectoryOfThisNode) {
    const Unprivileged user(path());
    const auto runtime = path() / "runtime";
    fs::create_directory(runtime);
    setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
    chmod(runtime.c_str(), 0755);
    // It may be that of the user who runs the tests: then it stays.
    std::set<fs::path> before;
    for (const auto& entry : fs::directory_iterator("/tmp"))
        before.insert(entry.path());
    const fs::path elsewhere = open_state_directory()->path;
    EXPECT_FALSE(elsewhere.string().starts_with(runtime.string()));
    chmod(runtime.c_str(), 0700);
    EXPECT_EQ(open_state_directory()->path, runtime / "containerize");
    chmod((runtime / "containerize").c_str(), 0755);
    EXPECT_FALSE(open_state_directory()->path.starts_with(runtime.string()));
    unsetenv("XDG_RUNTIME_DIR");
    std::error_code in_use;
    if (!before.contains(elsewhere)) fs::remove(elsewhere, in_use);
}

} // namespace
} // namespace containerize::launch
