// A server that dies of a request is replaced, and other requests are answered.
#include "../temporary.h"
#include "image/writer.h"
#include "launch/namespace.h"
#include "mounts/served_mount.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <random>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::mounts {
namespace {

using namespace std::chrono_literals;
using fuse::ServerDeaths;
using test::TemporaryDirectory;

bool resend_is_possible() {
    utsname name{};
    int major = 0, minor = 0;
    return uname(&name) == 0 && std::sscanf(static_cast<char*>(name.release), "%d.%d", &major, &minor) == 2 &&
           std::pair(major, minor) >= std::pair(6, 9);
}

/// A read at this offset of an image kills the process.
constexpr unsigned deadly_offset = 256U << 10U;

/// Applies to this process and its future children.
bool make_reads_deadly() {
    const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_CORE, &no_core);
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, deadly_offset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = std::size(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// In a process of its own, because a namespace cannot be left again.
void in_child(const std::function<void()>& body) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        body();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

class DyingServers : public testing::Test {
protected:
    void SetUp() override {
        if (!resend_is_possible()) GTEST_SKIP() << "a killed server can be replaced from Linux 6.9 on";
        std::mt19937 random(1);
        std::string noise(700'000, '\0');
        for (auto& byte : noise)
            byte = static_cast<char>(random());
        directory_.write("tree/bad", noise);
        directory_.write("tree/good", "good");
        image::WriterOptions options;
        options.compression.compressor = image::Compressor::none;
        ASSERT_TRUE(image::write_tree(directory_ / "tree", image_, options, 022));
        fs::create_directory(point_);
    }

    Result<ServedMount> mount() const {
        TRY(launch::enter_new_namespaces());
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        sigprocmask(SIG_BLOCK, &signals, nullptr);
        std::vector<image::Layers::ImageFile> images;
        images.push_back(
            {.file = Fd(open(image_.c_str(), O_RDONLY | O_CLOEXEC)), .path = image_, .offset = 0});
        return ServedMount::mount(std::move(images), point_);
    }

    /// Keeps the mount as a session does, until a program that reads a file at an offset has ended. Returns
    /// its errno.
    int read_file(ServedMount& served, const std::string& name, off_t offset) {
        const pid_t reader = fork();
        if (reader == 0) {
            served.close_devices();
            char byte = 0;
            const Fd file(open((point_ / name).c_str(), O_RDONLY | O_CLOEXEC));
            const bool done =
                file && lseek(file.get(), offset, SEEK_SET) == offset && read(file.get(), &byte, 1) == 1;
            _exit(done ? 0 : errno);
        }
        sigset_t death;
        sigemptyset(&death);
        sigaddset(&death, SIGCHLD);
        for (;;) {
            int status = 0;
            for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
                if (pid == reader) return WEXITSTATUS(status);
                if (pid != served.server()) continue;
                ++deaths_;
                kept_ = served.on_server_exit(status);
            }
            if (kept_) kept_ = served.revive_when_due();
            timespec patience{.tv_sec = 60, .tv_nsec = 0};
            if (const auto due = served.successor_due()) {
                const auto left = std::max<std::chrono::nanoseconds>(*due - ServerDeaths::Clock::now(), 1ns);
                patience = {.tv_sec = left / 1s, .tv_nsec = (left % 1s).count()};
            }
            sigtimedwait(&death, nullptr, &patience);
        }
    }

    TemporaryDirectory directory_;
    fs::path image_ = directory_ / "image", point_ = directory_ / "point";
    unsigned deaths_ = 0;
    Status kept_;
};

TEST_F(DyingServers, OfOneRequestFailThatOneAndAnswerAllOthers) {
    in_child([this] {
        ASSERT_TRUE(make_reads_deadly());
        auto served = mount();
        ASSERT_TRUE(served) << to_string(served.error());
        EXPECT_EQ(read_file(*served, "bad", deadly_offset + 50'000), EIO);
        EXPECT_GE(deaths_, ServerDeaths::most);
        EXPECT_TRUE(kept_);
        EXPECT_GE(served->refused(), 1U);
        EXPECT_EQ(read_file(*served, "good", 0), 0);
    });
}

TEST_F(DyingServers, WhoseImageIsGoneAreNotReplaced) {
    in_child([this] {
        auto served = mount();
        ASSERT_TRUE(served) << to_string(served.error());
        fs::resize_file(image_, 1000);
        kill(served->server(), SIGKILL);
        EXPECT_NE(read_file(*served, "bad", 0), 0);
        EXPECT_EQ(deaths_, 2U); // the killed one, and one that could not open the image
        ASSERT_FALSE(kept_);
        EXPECT_TRUE(to_string(kept_.error()).contains("the server of an image cannot continue"))
            << to_string(kept_.error());
        EXPECT_FALSE(served->is_served());
    });
}

} // namespace
} // namespace containerize::mounts
