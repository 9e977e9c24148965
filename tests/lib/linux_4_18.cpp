// Runs a command as on Linux 4.18, the oldest kernel that containerize supports, as far as that can be told
// from the answers of system calls:
//
// - Younger calls do not exist, and others do not know younger flags. A seccomp filter refuses them.
// - Some depend on what is in memory. The kernel asks this program about them (seccomp_unotify(2)): users
//   cannot mount overlays, FUSE speaks version 7.27, uname() says 4.18, and copy_file_range() stays on one
//   filesystem.
//
// What 4.18 ignores is refused here (EINVAL), so that a test shows its use. Everything that the command
// starts is treated alike, until the command ends. Without root, setuid programs gain no privileges. Needs
// Linux 5.19.
//
// Usage: linux_4_18 COMMAND [ARGUMENT ...]
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <linux/loop.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif

/// The calls of 4.18 have the numbers up to this one's.
constexpr std::uint32_t youngest_call = SYS_rseq;

/// How much src/fuse/connection.cpp reads when it expects the kernel's first message. No other read is of
/// this size, so those of servers cost nothing more.
constexpr std::uint32_t read_of_first_message =
    sizeof(fuse_in_header) + sizeof(fuse_init_in) + FUSE_MIN_READ_BUFFER;

constexpr std::uint32_t fuse_minor = 27;
constexpr std::uint32_t fuse_flags = (FUSE_ABORT_ERROR << 1U) - 1; // up to the youngest one
/// Of the first message; FUSE_INIT_EXT (7.36) makes it longer.
constexpr std::uint32_t length_of_first_message =
    sizeof(fuse_in_header) + offsetof(fuse_init_in, flags) + sizeof(fuse_init_in::flags);

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "linux_4_18: %s: %s\n", what, std::strerror(errno));
    std::exit(125);
}

// The filter.

enum class If : std::uint8_t { always, equal, above, any_bit };

constexpr std::uint32_t allow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t ask = SECCOMP_RET_USER_NOTIF;
constexpr std::uint32_t refuse(int error_number) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error_number);
}

/// What happens to a call if an argument (its lower 32 bits) is as described.
struct Rule {
    std::uint32_t call;
    unsigned argument;
    If condition;
    std::uint32_t operand;
    std::uint32_t result;
};

// The first rule that applies counts.
constexpr auto rules = std::to_array<Rule>({
    {SYS_clone, 0, If::any_bit, CLONE_PIDFD, refuse(EINVAL)},
    {SYS_unshare, 0, If::any_bit, CLONE_NEWTIME, refuse(EINVAL)},
    // Without pidfds, a descriptor is of one namespace.
    {SYS_setns, 1, If::equal, 0, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWNS, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWUSER, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWPID, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWNET, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWUTS, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWIPC, allow},
    {SYS_setns, 1, If::equal, CLONE_NEWCGROUP, allow},
    {SYS_setns, 0, If::always, 0, refuse(EINVAL)},
    {SYS_waitid, 0, If::above, P_PGID, refuse(EINVAL)},

    {SYS_prctl, 0, If::equal, PR_SET_PTRACER, allow},
    {SYS_prctl, 0, If::above, PR_SET_SPECULATION_CTRL, refuse(EINVAL)},
    {SYS_memfd_create, 1, If::any_bit,
     ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | (MAP_HUGE_MASK << MAP_HUGE_SHIFT)), refuse(EINVAL)},
    {SYS_getrandom, 2, If::above, 3, refuse(EINVAL)}, // GRND_NONBLOCK | GRND_RANDOM
    {SYS_madvise, 2, If::above, MADV_HWPOISON - 1, allow},
    {SYS_madvise, 2, If::above, MADV_KEEPONFORK, refuse(EINVAL)},
    {SYS_mremap, 3, If::any_bit, MREMAP_DONTUNMAP, refuse(EINVAL)},
    {SYS_ioctl, 1, If::equal, LOOP_CONFIGURE, refuse(EINVAL)},

    // Without the call, libc answers by fstatat(): without younger fields and attributes. It has no
    // equivalent of this flag.
    {SYS_statx, 2, If::any_bit, AT_STATX_DONT_SYNC, allow},
    {SYS_statx, 0, If::always, 0, refuse(ENOSYS)},

    {SYS_mount, 3, If::any_bit, MS_NOSYMFOLLOW, refuse(EINVAL)},
    {SYS_mount, 0, If::always, 0, ask},
    {SYS_read, 2, If::equal, read_of_first_message, ask},
    {SYS_uname, 0, If::always, 0, ask},
    {SYS_copy_file_range, 0, If::always, 0, ask},
});

constexpr std::uint32_t argument_at(unsigned number) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}

std::uint16_t instruction_for(If condition) {
    switch (condition) {
    case If::equal:
        return BPF_JMP | BPF_JEQ | BPF_K;
    case If::above:
        return BPF_JMP | BPF_JGT | BPF_K;
    case If::any_bit:
        return BPF_JMP | BPF_JSET | BPF_K;
    default:
        return BPF_JMP | BPF_JGE | BPF_K; // any number is at least 0
    }
}

std::vector<sock_filter> make_filter() {
    constexpr std::uint16_t load = BPF_LD | BPF_W | BPF_ABS;
    constexpr std::uint16_t jump_if_equal = BPF_JMP | BPF_JEQ | BPF_K;
    constexpr std::uint16_t jump_if_above = BPF_JMP | BPF_JGT | BPF_K;
    constexpr std::uint16_t give = BPF_RET | BPF_K;
    constexpr std::uint32_t number = offsetof(seccomp_data, nr);
    std::vector<sock_filter> filter = {
        {load, 0, 0, offsetof(seccomp_data, arch)},
        {jump_if_equal, 1, 0, architecture},
        {give, 0, 0, allow},
        {load, 0, 0, number},
        {jump_if_above, 0, 1, youngest_call},
        {give, 0, 0, refuse(ENOSYS)},
    };
    for (const auto& rule : rules) {
        filter.push_back({load, 0, 0, number});
        filter.push_back({jump_if_equal, 0, 3, rule.call});
        filter.push_back({load, 0, 0, argument_at(rule.argument)});
        filter.push_back({instruction_for(rule.condition), 0, 1, rule.operand});
        filter.push_back({give, 0, 0, rule.result});
    }
    filter.push_back({give, 0, 0, allow});
    return filter;
}

/// Returns the descriptor on which the kernel asks.
int install_filter() {
    auto filter = make_filter();
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("cannot give up privileges");
    // A call that was carried out here must not be interrupted, and so repeated.
    const auto listener =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
    if (listener < 0) fail("cannot install the filter");
    return static_cast<int>(listener);
}

// Calls that the kernel asks about.

class Descriptor {
public:
    explicit Descriptor(long fd) : fd_(static_cast<int>(fd)) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

/// Nothing: the kernel carries out the call.
struct Answer {
    int error_number = 0;
    std::int64_t value = 0;
};

class Caller {
public:
    explicit Caller(const seccomp_notif& notice) : proc_("/proc/" + std::to_string(notice.pid)) {}

    [[nodiscard]] std::string path(std::string_view name) const { return proc_ + "/" + std::string(name); }

    /// At most a page: as much as a mount's options have.
    [[nodiscard]] std::string text(std::uint64_t address) const {
        std::array<char, 4096> buffer{};
        const Descriptor memory(open(path("mem").c_str(), O_RDONLY | O_CLOEXEC));
        if (address == 0 ||
            pread(memory.get(), buffer.data(), buffer.size() - 1, static_cast<off_t>(address)) <= 0)
            return {};
        return buffer.data();
    }

    [[nodiscard]] bool write(std::uint64_t address, std::span<const std::byte> bytes) const {
        const Descriptor memory(open(path("mem").c_str(), O_WRONLY | O_CLOEXEC));
        return pwrite(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
               static_cast<ssize_t>(bytes.size());
    }

    /// A copy of a descriptor.
    [[nodiscard]] Descriptor descriptor(std::uint64_t number) const {
        const Descriptor process(syscall(SYS_pidfd_open, thread_group(), 0));
        return Descriptor(syscall(SYS_pidfd_getfd, process.get(), number, 0));
    }

    [[nodiscard]] dev_t filesystem_of(std::uint64_t number) const {
        struct statx info {};
        statx(AT_FDCWD, path("fd/" + std::to_string(number)).c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info);
        return makedev(info.stx_dev_major, info.stx_dev_minor);
    }

    [[nodiscard]] bool is_in_our_user_namespace() const {
        struct stat ours {};
        struct stat theirs {};
        return stat("/proc/self/ns/user", &ours) == 0 && stat(path("ns/user").c_str(), &theirs) == 0 &&
               ours.st_ino == theirs.st_ino;
    }

private:
    [[nodiscard]] int thread_group() const {
        std::ifstream status(path("status"));
        std::string word;
        while (status >> word)
            if (int number = 0; word == "Tgid:" && status >> number) return number;
        return -1;
    }

    std::string proc_;
};

std::optional<Answer> answer_mount(const Caller& caller, const seccomp_data& call) {
    constexpr std::uint64_t not_new =
        MS_REMOUNT | MS_BIND | MS_MOVE | MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE;
    if ((call.args[3] & not_new) != 0 || caller.text(call.args[2]) != "overlay") return std::nullopt;
    if (!caller.is_in_our_user_namespace()) return Answer{EPERM};
    if (caller.text(call.args[4]).find("userxattr") != std::string::npos) return Answer{EINVAL};
    return std::nullopt;
}

/// The first message of FUSE, read here, as 4.18 sends it.
std::optional<Answer> answer_read(const Caller& caller, const seccomp_data& call) {
    const Descriptor device = caller.descriptor(call.args[0]);
    const dev_t fuse_device = makedev(10, 229);
    struct stat info {};
    pollfd polled{device.get(), POLLIN, 0};
    if (fstat(device.get(), &info) != 0 || !S_ISCHR(info.st_mode) || info.st_rdev != fuse_device ||
        poll(&polled, 1, 0) != 1)
        return std::nullopt;
    std::array<std::byte, read_of_first_message> message{};
    const auto got = read(device.get(), message.data(), message.size());
    if (got < 0) return Answer{errno};
    auto length = static_cast<std::size_t>(got);
    fuse_in_header header{};
    std::memcpy(&header, message.data(), sizeof header);
    if (header.opcode == FUSE_INIT) {
        fuse_init_in offer{};
        std::memcpy(&offer, message.data() + sizeof header, sizeof offer);
        offer.minor = fuse_minor;
        offer.flags &= fuse_flags;
        length = header.len = length_of_first_message;
        std::memcpy(message.data(), &header, sizeof header);
        std::memcpy(message.data() + sizeof header, &offer, sizeof offer);
    }
    if (!caller.write(call.args[1], std::span(message).first(length))) return Answer{EFAULT};
    return Answer{0, static_cast<std::int64_t>(length)};
}

std::optional<Answer> answer_uname(const Caller& caller, const seccomp_data& call) {
    // Host names differ between namespaces. Without root, all that the command starts usually shares one.
    const Descriptor names(open(caller.path("ns/uts").c_str(), O_RDONLY | O_CLOEXEC));
    setns(names.get(), CLONE_NEWUTS);
    utsname name{};
    uname(&name);
    std::strcpy(name.release, "4.18.0");
    return Answer{caller.write(call.args[0], std::as_bytes(std::span(&name, 1))) ? 0 : EFAULT};
}

std::optional<Answer> answer_copy(const Caller& caller, const seccomp_data& call) {
    if (caller.filesystem_of(call.args[0]) == caller.filesystem_of(call.args[2])) return std::nullopt;
    return Answer{EXDEV};
}

std::optional<Answer> answer(const seccomp_notif& notice) {
    const Caller caller(notice);
    switch (notice.data.nr) {
    case SYS_mount:
        return answer_mount(caller, notice.data);
    case SYS_read:
        return answer_read(caller, notice.data);
    case SYS_uname:
        return answer_uname(caller, notice.data);
    default:
        return answer_copy(caller, notice.data);
    }
}

/// Answers until the process `command` (a pidfd) has ended.
void answer_all(int listener, int command) {
    for (;;) {
        std::array<pollfd, 2> polled = {pollfd{listener, POLLIN, 0}, pollfd{command, POLLIN, 0}};
        if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) fail("cannot wait");
        if (polled[1].revents != 0) return;
        seccomp_notif notice{};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) continue; // the caller was killed
        const auto answered = answer(notice);
        seccomp_notif_resp response{};
        response.id = notice.id;
        if (!answered)
            response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        else if (answered->error_number != 0)
            response.error = -answered->error_number;
        else
            response.val = answered->value;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
}

[[noreturn]] void become(char** command, int channel) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int listener = install_filter();
    char taken = 0;
    if (send(channel, &listener, sizeof listener, 0) != sizeof listener || recv(channel, &taken, 1, 0) != 1)
        fail("cannot hand over the filter");
    // NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): the caller chooses what to run
    execvp(command[0], command);
    fail(command[0]);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: linux_4_18 COMMAND [ARGUMENT ...]\n", stderr);
        return 125;
    }
    std::array<int, 2> channel{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0)
        fail("cannot create a socket");
    const pid_t pid = fork();
    if (pid < 0) fail("cannot start a process");
    if (pid == 0) become(argv + 1, channel[1]);
    close(channel[1]);
    std::signal(SIGINT, SIG_IGN); // the command ends, then this program
    const Descriptor command(syscall(SYS_pidfd_open, pid, 0));
    int theirs = -1;
    if (recv(channel[0], &theirs, sizeof theirs, 0) == sizeof theirs) {
        const Descriptor listener(syscall(SYS_pidfd_getfd, command.get(), theirs, 0));
        if (listener.get() < 0 || send(channel[0], "", 1, 0) != 1) fail("cannot take over the filter");
        answer_all(listener.get(), command.get());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
