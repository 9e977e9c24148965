#include "mounts/served_mount.h"

#include "core/signals_blocked.h"
#include "core/thread.h"
#include "fuse/server.h"
#include "launch/namespace.h"
#include "mounts/kernel_mount.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

/// The longest pause between two looks at a process that usually ends within a millisecond.
constexpr auto longest_pause = std::chrono::microseconds(5000);
/// How long a supervisor waits for an overlay, whose server may be waiting for a filesystem, perhaps for
/// ever.
constexpr auto longest_wait_for_cover = std::chrono::seconds(10);
/// The same if the image was in use: then others are waiting for the supervisor, and programs for the image.
constexpr auto longest_wait_for_new_cover = std::chrono::seconds(1);

/// The source by which our overlays are recognized in the list of mounts.
constexpr const char* overlay_source = "containerize";

std::function<void()> server_cleanup;

// Without asking the server: it may just have died, and the caller is the one to replace it.
dev_t device_at(const std::string& path) {
    struct statx info {};
    if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0) return 0;
    return makedev(info.stx_dev_major, info.stx_dev_minor);
}

/// Where this filesystem is mounted.
std::set<std::string> points_of(dev_t device, std::span<const Mounted> table) {
    std::set<std::string> points;
    for (const auto& mounted : table)
        if (mounted.device == device) points.insert(mounted.point);
    return points;
}

bool is_fuse_mount(dev_t device, std::span<const Mounted> table) {
    return std::ranges::any_of(table, [device](const Mounted& mounted) {
        return mounted.device == device && mounted.type == own_fuse_type;
    });
}

std::unexpected<Error> not_at_its_path(const std::string& path) {
    return fail({.what = "the server of an image died, and the image cannot be mounted again",
                 .why = "it is not at its path any more",
                 .where = path});
}

/// Covers the FUSE mount at `mount_point` by an overlay of its content. The overlay itself answers what FUSE
/// must ask the server (Python asks of each file that it opens whether it is a terminal). Users may mount one
/// from Linux 5.11 on; without it everything works the same, but slower.
bool cover(const std::string& mount_point) {
    const Fd root(open(mount_point.c_str(), O_PATH | O_CLOEXEC));
    const Fd tree(openat(root.get(), fuse::layer_name, O_PATH | O_CLOEXEC));
    const Fd empty(openat(root.get(), fuse::empty_layer_name, O_PATH | O_CLOEXEC));
    if (!tree || !empty) return false;
    const std::string options = "userxattr,lowerdir=" + path_of(tree) + ":" + path_of(empty);
    return mount(overlay_source, path_of(root).c_str(), "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
                 options.c_str()) == 0;
}

/// Waits until all have closed the other end of a pipe. Signals wait, too: the server may be waiting for a
/// filesystem, perhaps for ever, and no handler must give signs of life meanwhile.
void wait_for_close(const Fd& pipe) {
    const SignalsBlocked blocked;
    char none = 0;
    [[maybe_unused]] const auto closed = read(pipe.get(), &none, 1);
}

} // namespace

void set_server_cleanup(std::function<void()> cleanup) {
    server_cleanup = std::move(cleanup);
}

Result<ServedMount> ServedMount::mount(std::vector<image::Layers::ImageFile> images,
                                       const std::filesystem::path& mount_point, Use use,
                                       ColdStart cold_start) {
    ServedMount mounted;
    mounted.use_ = use;
    mounted.images_ = std::move(images);
    mounted.cold_start_ = std::move(cold_start);
    mounted.statistics_ = TRY(fuse::make_shared_statistics());
    mounted.connection_ = TRY(fuse::mount_fuse(mount_point));
    mounted.mount_points_.push_back(mount_point.string());
    if (auto done = mounted.set_up(longest_wait_for_cover); !done) {
        mounted.unmount();
        return fail(std::move(done.error()));
    }
    return mounted;
}

Status ServedMount::set_up(std::chrono::milliseconds longest_wait) {
    const auto connected = device_at(mount_points_.front());
    below_.insert(connected);
    shown_.insert(connected);
    TRY(start_server());
    if (use_ == Use::tree) TRY(cover_by_overlay(longest_wait));
    device_ = device_at(mount_points_.front());
    shown_.insert(device_);
    listed_points_ = points_of(device_, mounted_filesystems());
    return {};
}

Result<ServedMount> ServedMount::mount_without_server(const image::Layers::ImageFile& image,
                                                      const std::filesystem::path& mount_point) {
    TRY(mount_by_kernel(image, mount_point));
    ServedMount mounted;
    mounted.mount_points_.push_back(mount_point.string());
    mounted.device_ = device_at(mount_point);
    mounted.below_ = {mounted.device_};
    mounted.listed_points_ = points_of(mounted.device_, mounted_filesystems());
    return mounted;
}

// In another process: mounting asks the server, which may die meanwhile, and this one must be free to replace
// it.
Status ServedMount::cover_by_overlay(std::chrono::milliseconds longest_wait) {
    const pid_t supervisor = getpid();
    const pid_t pid = fork();
    if (pid < 0) return {};
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != supervisor) _exit(1);
        // While any process has these open, the kernel does not fail requests that nobody will answer.
        if (server_cleanup) server_cleanup();
        close_devices();
        _exit(cover(mount_points_.front()) ? 0 : 1);
    }
    const auto deadline = fuse::ServerDeaths::Clock::now() + longest_wait;
    for (auto pause = std::chrono::microseconds(50); waitpid(pid, nullptr, WNOHANG) != pid;
         pause = std::min(2 * pause, longest_pause)) {
        if (fuse::ServerDeaths::Clock::now() >= deadline) {
            // Not waited for: it may be unable to end before the server answers.
            kill(pid, SIGKILL);
            overlay_timed_out_ = true;
            return {};
        }
        int status = 0;
        Status served;
        if (server_ > 0 && waitpid(server_, &status, WNOHANG) == server_) {
            served = on_server_exit(status);
            if (served && !connection_.features.resend) {
                // Without a connection, the process ends at once. The images are mounted again when that is
                // due.
                close_devices();
                waitpid(pid, nullptr, 0);
                return {};
            }
        }
        if (served) served = revive_when_due();
        if (!served) {
            waitpid(pid, nullptr, 0); // without a connection it ends at once
            return served;
        }
        std::this_thread::sleep_for(pause);
    }
    return {};
}

Status ServedMount::bind_at(const std::string& path) {
    if (::mount(mount_points_.front().c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
        return fail_errno("cannot mount the image at its second path", path);
    listed_points_ = points_of(device_, mounted_filesystems());
    return {};
}

Status ServedMount::show_at(const std::string& path) {
    TRY(bind_at(path));
    mount_points_.push_back(path);
    return {};
}

bool ServedMount::in_place() const {
    return std::ranges::all_of(mount_points_,
                               [this](const std::string& path) { return device_at(path) == device_; });
}

bool ServedMount::in_place(std::span<const Mounted> table) const {
    return mount_points_.empty() || std::ranges::includes(points_of(device_, table), listed_points_);
}

Status ServedMount::start_server() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot create a pipe");
    const Fd left(ends[0]);
    Fd leaving(ends[1]);
    deaths_.started(statistics_->progress, fuse::ServerDeaths::Clock::now());
    const pid_t supervisor = getpid();
    const pid_t pid = fork_blocked(); // one thread waits for the signal of the supervisor's death
    if (pid < 0) return fail_errno("cannot start a server process");
    if (pid > 0) {
        server_ = pid;
        leaving.reset();
        // The server of a root must have left the namespace before the root is changed. A successor stays.
        if (use_ == Use::root && !revived_) wait_for_close(left);
        return {};
    }
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != supervisor) kill(getpid(), SIGUSR1); // raise() would reach only this thread
    serve(std::move(leaving));
}

void ServedMount::serve(Fd leaving) {
    const fuse::FuseConnection connection =
        std::move(connection_); // close_supervisor_files() closes those of all images
    if (server_cleanup) server_cleanup();

    auto instruments = instruments_of_environment();
    instruments.statistics = {statistics_, &statistics_->image};
    auto layers = image::Layers::open(std::move(images_), instruments);
    if (!layers) end_server(to_string(layers.error()));
    const std::string mounts = launch::mount_namespace_of("self");
    // The server of a root must not keep the namespace of that root alive. A successor cannot leave it: it
    // has no other root.
    const bool leaves = use_ == Use::root && !revived_;
    if (leaves && (unshare(CLONE_NEWNS) != 0 || umount2(mount_points_.front().c_str(), MNT_DETACH) != 0))
        end_server(std::strerror(errno));
    leaving.reset();
    sigset_t death;
    sigemptyset(&death);
    sigaddset(&death, SIGUSR1);
    const bool outlives = if_threads_are_left([&] {
        std::thread([this, mounts, death] {
            int signal = 0;
            sigwait(&death, &signal);
            serve_without_supervisor(mounts);
        }).detach();
    });
    if (!outlives) sigprocmask(SIG_UNBLOCK, &death, nullptr);
    // In the background, while requests are answered. Not in a successor: if memory is short, its predecessor
    // may have died of it.
    if (!revived_ && !cold_start_.profiles.empty())
        if_threads_are_left(
            [&] { std::thread([this, &layers] { prefetch(**layers, cold_start_); }).detach(); });
    statistics_->progress.serving = true;
    const int failed = fuse::serve_fuse(
        **layers, connection,
        {.root = use_ == Use::tree ? fuse::MountRoot::tree_and_layers : fuse::MountRoot::tree,
         .suspects = deaths_.suspects(),
         .statistics = statistics_.get()});
    if (failed != 0) end_server(std::strerror(failed));
    _exit(0);
}

void ServedMount::end_server(const std::string& why) {
    auto& failure = statistics_->progress.failure;
    failure.at(why.copy(failure.data(), failure.size() - 1)) = '\0';
    _exit(1);
}

// Servers outlive a killed supervisor for as long as processes use their mount.
void ServedMount::serve_without_supervisor(const std::string& mounts) {
    while (namespace_in_use(mounts))
        std::this_thread::sleep_for(std::chrono::seconds(2));
    if (use_ == Use::root && revived_) _exit(0);
    unmount();
    for (;;)
        pause(); // the server's threads end the process once the last file is closed
}

Status ServedMount::on_server_exit(int status) {
    const std::string where = mount_points_.empty() ? std::string() : mount_points_.front();
    server_ = 0;
    revived_ = true;
    const auto now = fuse::ServerDeaths::Clock::now();
    const bool may_continue =
        deaths_.died(status, statistics_->progress, now) == fuse::ServerDeaths::Next::successor;
    if (may_continue && (connection_.features.resend || may_be_mounted_again())) {
        due_ = now + deaths_.pause();
        return {};
    }
    give_up();
    if (may_continue && below_.size() < fuse::ServerDeaths::most)
        return fail(
            {.what = "the server of an image died, and this kernel cannot pass its requests to a new server",
             .why = "that needs Linux 6.9",
             .where = where});
    if (WIFEXITED(status))
        return fail({.what = "the server of an image cannot continue",
                     .why = statistics_->progress.failure.data(),
                     .where = where});
    return fail({.what = "the servers of an image keep dying",
                 .where = where,
                 .hint = "If the image was changed, build it again with `containerize new --force`."});
}

Status ServedMount::revive_when_due() {
    if (!due_ || fuse::ServerDeaths::Clock::now() < *due_) return {};
    due_.reset();
    auto done = connection_.features.resend ? replace_server() : mount_again();
    if (!done) give_up();
    return done;
}

Status ServedMount::replace_server() {
    TRY(start_server());
    return fuse::resend_requests(connection_);
}

/// Not before it was mounted, and not once it is unmounted. The dead mounts below remain, so their number is
/// limited.
bool ServedMount::may_be_mounted_again() const {
    return use_ == Use::tree && !listed_points_.empty() && !mount_points_.empty() &&
           below_.size() < fuse::ServerDeaths::most;
}

/// Fails if the mount is not there any more. Does not ask the server.
Result<std::vector<Fd>> ServedMount::open_mount_points() const {
    std::vector<Fd> points;
    for (const auto& path : mount_points_) {
        points.emplace_back(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!points.back() || !shown_.contains(device_at(path_of(points.back()))))
            return not_at_its_path(path);
    }
    return points;
}

// Over the dead mount: without any, programs would see the directory below, and miss files.
Status ServedMount::mount_again() {
    const auto points = TRY(open_mount_points());
    // Before mounting, which waits for processes that have asked for a name in the directory: only this ends
    // their requests.
    close_devices();
    deaths_.on_new_connection();
    auto connection = fuse::mount_fuse(path_of(points.front()));
    if (!connection) {
        connection.error().where = mount_points_.front();
        return fail(std::move(connection.error()));
    }
    connection_ = std::move(*connection);
    if (!is_fuse_mount(device_at(mount_points_.front()), mounted_filesystems()))
        return not_at_its_path(mount_points_.front()); // it was moved after that was opened
    TRY(set_up(longest_wait_for_new_cover));
    for (const auto& point : std::span(points).subspan(1))
        TRY(bind_at(path_of(point)));
    return {};
}

void ServedMount::give_up() {
    due_.reset();
    unmount();
    close_devices(); // the last descriptors: the kernel now fails all pending requests
}

void ServedMount::unmount() {
    if (use_ == Use::root) {
        if (revived_ && server_ > 0) kill(server_, SIGKILL);
        return;
    }
    // At any path: mounts move with a directory that is renamed, and are gone with one that is removed. Other
    // mounts over them may be the host's, and stay.
    const auto table = mounted_filesystems();
    auto ours = below_;
    for (const auto& served : table)
        for (const auto& over : table)
            if (below_.contains(served.device) && over.point == served.point && over.type == "overlay" &&
                over.source == overlay_source)
                ours.insert(over.device);
    for (auto mounted = table.rbegin(); mounted != table.rend(); ++mounted)
        if (ours.contains(mounted->device)) umount2(mounted->point.c_str(), MNT_DETACH);
    mount_points_.clear();
    if (!connection_.features.resend) due_.reset(); // a successor would only mount the image again
}

bool namespace_in_use(const std::string& mounts) {
    const auto program_of = [](const std::string& process) {
        std::error_code failed;
        return std::filesystem::read_symlink("/proc/" + process + "/exe", failed);
    };
    const auto processes = launch::processes_in(mounts);
    if (!processes) return true; // unknown, so assume that it is in use
    return std::ranges::any_of(
        *processes, [&](pid_t pid) { return program_of(std::to_string(pid)) != program_of("self"); });
}

} // namespace containerize::mounts
