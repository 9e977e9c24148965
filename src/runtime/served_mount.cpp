#include "runtime/served_mount.h"

#include "runtime/fuse_server.h"
#include "runtime/kernel_mount.h"
#include "util/thread.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

/// Servers that die more often than this are broken, not unlucky.
constexpr std::size_t deaths_allowed = 100;
constexpr auto deaths_window = std::chrono::seconds(10);

void (*server_cleanup)(void*) = nullptr;
void* server_cleanup_argument = nullptr;

// Without asking the server: it may just have died, and the caller is who replaces it.
dev_t device_at(const std::string& path) {
    struct statx info {};
    if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0) return 0;
    return makedev(info.stx_dev_major, info.stx_dev_minor);
}

/// An empty directory at `mount_point`, in memory.
Fd mount_empty(const std::filesystem::path& mount_point) {
    if (mount("containerize", mount_point.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=755") != 0)
        return {};
    return Fd(open(mount_point.c_str(), O_PATH | O_CLOEXEC));
}

/// Mounts an overlay of what is at `mount_point`, and of nothing, over it. It answers itself what only the
/// server can answer for FUSE: Python asks of each file that it opens whether it is a terminal. False where
/// users may not have one (before Linux 5.11), which is as good but slower. The overlay asks the server,
/// which may die meanwhile: then it is not waited for, since the caller is who replaces it.
bool cover(const std::string& mount_point, const Fd& empty, pid_t server) {
    const Fd images(open(mount_point.c_str(), O_PATH | O_CLOEXEC));
    const Fd end_of_server(static_cast<int>(syscall(SYS_pidfd_open, server, 0)));
    if (!images || !end_of_server) return false;
    const auto place = [](const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); };
    const std::string options = "userxattr,xino=on,lowerdir=" + place(empty) + ":" + place(images);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(mount("containerize", mount_point.c_str(), "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
                    options.c_str()) == 0
                  ? 0
                  : 1);
    if (pid < 0) return false;
    const Fd end_of_mount(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    std::array<pollfd, 2> ends{pollfd{.fd = end_of_mount.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = end_of_server.get(), .events = POLLIN, .revents = 0}};
    while (poll(ends.data(), ends.size(), -1) < 0 && errno == EINTR) {
    }
    if (ends[0].revents == 0) {
        // It waits for the server's successor. What it mounts then must be taken away as well.
        kill(pid, SIGKILL);
        return true;
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string link(const std::string& path) {
    std::array<char, 512> target;
    const auto size = readlink(path.c_str(), target.data(), target.size());
    return {target.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

} // namespace

void set_server_cleanup(void (*cleanup)(void*), void* argument) {
    server_cleanup = cleanup;
    server_cleanup_argument = argument;
}

Result<ServedMount> ServedMount::mount(std::vector<image::Layers::ImageFile> images,
                                       const std::filesystem::path& mount_point, Use use,
                                       ColdStart cold_start) {
    ServedMount mounted;
    mounted.use_ = use;
    mounted.images_ = std::move(images);
    mounted.cold_start_ = std::move(cold_start);
    auto statistics = make_shared_statistics();
    if (!statistics) return fail(std::move(statistics.error()));
    mounted.statistics_ = std::move(*statistics);
    // A root is no place to stack mounts at.
    const Fd empty = use == Use::tree ? mount_empty(mount_point) : Fd();
    auto connection = mount_fuse(mount_point, geteuid(), getegid(), server_threads());
    if (!connection) {
        if (empty) umount2(mount_point.c_str(), MNT_DETACH);
        return fail(std::move(connection.error()));
    }
    mounted.connection_ = std::move(*connection);
    mounted.mount_points_.push_back(mount_point.string());
    if (empty) mounted.stacked_ = 2;
    if (auto started = mounted.start_server(); !started) {
        mounted.unmount();
        return fail(std::move(started.error()));
    }
    if (empty && cover(mount_point.string(), empty, mounted.server_)) mounted.stacked_ = 3;
    mounted.device_ = device_at(mount_point);
    return mounted;
}

Result<ServedMount> ServedMount::mount_without_server(const image::Layers::ImageFile& image,
                                                      const std::filesystem::path& mount_point) {
    if (auto done = mount_by_kernel(image, mount_point); !done) return fail(std::move(done.error()));
    ServedMount mounted;
    mounted.mount_points_.push_back(mount_point.string());
    mounted.device_ = device_at(mount_point);
    return mounted;
}

Status ServedMount::show_at(const std::string& path) {
    if (::mount(mount_points_.front().c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
        return fail_errno("cannot show the image at its other path", path);
    mount_points_.push_back(path);
    return {};
}

bool ServedMount::in_place() const {
    return device_at(mount_points_.front()) == device_;
}

Status ServedMount::start_server() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe");
    const Fd left(ends[0]);
    Fd leaving(ends[1]);
    const pid_t supervisor = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a server process");
    if (pid > 0) {
        server_ = pid;
        leaving.reset();
        // The server of a root must have left the namespace before that is rearranged.
        char none = 0;
        while (use_ == Use::root && read(left.get(), &none, 1) < 0 && errno == EINTR) {
        }
        return {};
    }
    // The supervisor's death is told by a signal that one thread waits for.
    sigset_t signals;
    sigfillset(&signals);
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != supervisor) raise(SIGUSR1);
    serve(std::move(leaving));
}

void ServedMount::serve(Fd leaving) {
    const FuseConnection connection = std::move(connection_); // the cleanup closes those of all images
    if (server_cleanup != nullptr) server_cleanup(server_cleanup_argument);

    auto instruments = instruments_of_environment();
    instruments.statistics = {statistics_, &statistics_->image};
    auto layers = image::Layers::open(std::move(images_), instruments);
    // Seldom seen after the supervisor opened them; it counts as a death, and it gives up after a while.
    if (!layers) _exit(1);
    const std::string mounts = mount_namespace();
    // The server of a root must not keep the namespace alive whose root it is. A successor, for which that
    // root is the only one, cannot leave it.
    const bool leaves = use_ == Use::root && !revived_;
    if (leaves && (unshare(CLONE_NEWNS) != 0 || umount2(mount_points_.front().c_str(), MNT_DETACH) != 0))
        _exit(1);
    leaving.reset();
    sigset_t death;
    sigemptyset(&death);
    sigaddset(&death, SIGUSR1);
    const bool outlives = if_threads_are_left([&] {
        std::thread([this, mounts, death] {
            int signal = 0;
            sigwait(&death, &signal);
            outlive_supervisor(mounts);
        }).detach();
    });
    if (!outlives) sigprocmask(SIG_UNBLOCK, &death, nullptr);
    // In the background: requests are answered meanwhile. A successor does not: its predecessor may have died
    // of it, where memory is short.
    if (!revived_ && !cold_start_.profiles.empty())
        if_threads_are_left(
            [&] { std::thread([this, &layers] { prefetch(**layers, cold_start_); }).detach(); });
    _exit(serve_fuse(**layers, connection, {.uid = geteuid(), .gid = getegid()}, *statistics_) == 0 ? 0 : 1);
}

// When the supervisor is killed, servers stay as long as processes use their mount, and end with them.
void ServedMount::outlive_supervisor(const std::string& mounts) {
    while (namespace_in_use(mounts))
        std::this_thread::sleep_for(std::chrono::seconds(2));
    if (use_ == Use::root && revived_) _exit(0);
    unmount();
    for (;;)
        pause(); // the server's threads end the process once the last file is closed
}

Status ServedMount::revive() {
    server_ = 0;
    revived_ = true;
    const auto now = std::chrono::steady_clock::now();
    deaths_.push_back(now);
    std::erase_if(deaths_, [now](auto when) { return now - when > deaths_window; });
    Status done;
    if (!connection_.features.resend)
        done = fail(
            {.what = "the server of an image died, and this kernel cannot hand its requests to another one",
             .why = "that needs Linux 6.9",
             .where = mount_points_.front(),
             .hint = {}});
    else if (deaths_.size() > deaths_allowed)
        done = fail({.what = "the servers of an image keep dying",
                     .why = {},
                     .where = mount_points_.front(),
                     .hint = {}});
    else if (done = start_server(); done)
        done = resend_requests(connection_);
    if (!done) {
        unmount();
        close_devices(); // the last descriptor: the kernel now fails what waits for an answer
    }
    return done;
}

void ServedMount::unmount() {
    if (use_ == Use::root) {
        if (revived_ && server_ > 0) kill(server_, SIGKILL);
        return;
    }
    for (const auto& mount_point : mount_points_)
        umount2(mount_point.c_str(), MNT_DETACH);
    for (; !mount_points_.empty() && stacked_ > 1; --stacked_)
        umount2(mount_points_.front().c_str(), MNT_DETACH);
    mount_points_.clear();
}

bool is_in_this_namespace(pid_t process) {
    return link("/proc/" + std::to_string(process) + "/ns/mnt") == mount_namespace();
}

std::string mount_namespace() {
    return link("/proc/self/ns/mnt");
}

bool namespace_in_use(const std::string& mounts) {
    const std::string program = link("/proc/self/exe");
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
    if (!proc) return true; // not known: then it must stay
    while (const dirent* entry = readdir(proc.get())) {
        if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
        const std::string process = std::string("/proc/") + static_cast<const char*>(entry->d_name);
        if (link(process + "/ns/mnt") == mounts && link(process + "/exe") != program) return true;
    }
    return false;
}

} // namespace containerize::runtime
