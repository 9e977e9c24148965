// A mount of images: where it is, and how its supervisor waits for it.
#include "../happens.h"
#include "../temporary.h"
#include "../users.h"
#include "image/writer.h"
#include "launch/namespace.h"
#include "mounts/served_mount.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::mounts {
namespace {

class ServedMounts : public testing::Test {
protected:
    ServedMounts() {
        directory_.write("tree/file", "text");
        EXPECT_TRUE(image::write_tree(directory_ / "tree", image_, {}, 022));
        for (const auto& path : {first_, second_})
            fs::create_directories(path);
    }

    [[nodiscard]] Result<ServedMount> mount(ServedMount::Use use = ServedMount::Use::tree) const {
        std::vector<image::Layers::ImageFile> images;
        images.push_back(
            {.file = Fd(open(image_.c_str(), O_RDONLY | O_CLOEXEC)), .path = image_, .offset = 0});
        return ServedMount::mount(std::move(images), first_, use);
    }

    /// Shows a mount at two paths in a namespace of its own, and says whether it is in place before and after
    /// a change: first by what is at the paths, then by the table of mounts.
    [[nodiscard]] std::string in_place_around(const std::function<void()>& change) const {
        return test::in_process([&]() -> std::string {
            if (auto entered = launch::enter_new_namespaces(); !entered) return to_string(entered.error());
            auto served = mount();
            if (!served) return to_string(served.error());
            if (auto shown = served->show_at(second_); !shown) return to_string(shown.error());
            const auto in_place = [&served] {
                return std::string(served->in_place() ? "yes " : "no ") +
                       (served->in_place(mounted_filesystems()) ? "yes" : "no");
            };
            auto text = in_place();
            change();
            text += ", " + in_place();
            kill(served->server(), SIGKILL);
            return text;
        });
    }

    test::TemporaryDirectory directory_;
    fs::path image_ = directory_ / "image", first_ = directory_ / "a/first",
             second_ = directory_ / "b/second";
};

TEST_F(ServedMounts, AreInPlaceIfNothingChanges) {
    EXPECT_EQ(in_place_around([] {}), "yes yes, yes yes");
}

TEST_F(ServedMounts, AreInPlaceOnlyIfTheyAreAtAllTheirPaths) {
    for (const auto& path : {first_, second_}) {
        EXPECT_EQ(in_place_around([&] { umount2(path.c_str(), MNT_DETACH); }), "yes yes, no no");
        const auto elsewhere = directory_ / "elsewhere";
        EXPECT_EQ(in_place_around([&] { fs::rename(path.parent_path(), elsewhere); }), "yes yes, no no");
        fs::rename(elsewhere, path.parent_path());
    }
}

/// From now on, each pread64() of this process and its children waits until the returned descriptor is used.
Fd hold_reads() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = std::size(filter), .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return Fd(static_cast<int>(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)));
}

/// Whether a process sleeps, and whether a signal for it is held back meanwhile.
struct Sleep {
    bool sleeps = false, holds_back = false;
};
Sleep sleep_of(pid_t process, int signal) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    const std::string text{std::istreambuf_iterator<char>(status), {}};
    const auto pending = std::stoull(text.substr(text.find("\nShdPnd:") + 8), nullptr, 16);
    return {.sleeps = text.contains("\nState:\tS"),
            .holds_back = (pending >> static_cast<unsigned>(signal - 1) & 1U) != 0};
}

/// What processes share.
struct Signs {
    std::atomic<unsigned> given = 0, given_early = 0;
};
Signs* signs = nullptr;

/// Sends a signal to `reader` while it waits for a child whose first read is held. Then all reads go on.
[[noreturn]] void signal_and_let_go_on(const Fd& held, pid_t reader) {
    seccomp_notif read{};
    for (bool first = true; ioctl(held.get(), SECCOMP_IOCTL_NOTIF_RECV, &read) == 0; first = false) {
        const auto now = [&] { return sleep_of(reader, SIGALRM); };
        if (first && test::happens([&] { return now().sleeps; })) {
            kill(reader, SIGALRM);
            const bool seen = test::happens([&] {
                const auto sleep = now();
                return signs->given > 0 || (sleep.sleeps && sleep.holds_back);
            });
            signs->given_early = seen ? signs->given.load() : 1;
        }
        seccomp_notif_resp answer{
            .id = read.id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(held.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
        read = {};
    }
    _exit(0);
}

// A session that starts gives signs of life from a signal handler. While it waits for the server of its root,
// which may be waiting for a filesystem, it gives none.
TEST_F(ServedMounts, GiveNoSignsOfLifeWhileTheServerOfARootOpensItsImage) {
    const auto result = test::in_process([&]() -> std::string {
        if (auto entered = launch::enter_new_namespaces(); !entered) return to_string(entered.error());
        signs = new (mmap(nullptr, sizeof *signs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            Signs;
        std::signal(SIGALRM, [](int) { ++signs->given; });
        const pid_t reader = getpid();
        const Fd held = hold_reads();
        if (!held) return "reads cannot be held"; // before Linux 5.5
        const pid_t helper = fork();
        if (helper == 0) signal_and_let_go_on(held, reader);
        auto served = mount(ServedMount::Use::root);
        kill(helper, SIGKILL);
        if (!served) return to_string(served.error());
        kill(served->server(), SIGKILL);
        return std::to_string(signs->given_early) + " before, " + std::to_string(signs->given) + " in all";
    });
    if (result == "reads cannot be held") GTEST_SKIP() << result;
    EXPECT_EQ(result, "0 before, 1 in all");
}

} // namespace
} // namespace containerize::mounts
