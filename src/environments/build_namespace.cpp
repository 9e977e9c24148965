#include "environments/build_namespace.h"

#include "core/fd.h"
#include "core/fd_message.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "fuse/connection.h"
#include "fuse/server.h"
#include "image/layers.h"
#include "mounts/mount_point.h"
#include "mounts/outside_view.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::environments {

namespace {

/// Longer than the texts of any error, with room for the paths of many images in a request.
constexpr std::size_t longest_message = 128U << 10U;
/// The output of fuse-overlayfs, in the staging directory.
constexpr const char* fuse_overlay_log = "fuse-overlayfs.log";

std::vector<std::string> fields_of(std::string_view message) {
    const auto fields = split(message, '\0');
    return {fields.begin(), fields.end()};
}

/// Returns "" for success, otherwise the fields of the error.
std::string to_message(const Status& status) {
    if (status) return {};
    const auto& error = status.error();
    // The fault comes first, because long texts are truncated.
    return (std::to_string(static_cast<int>(error.fault)) + '\0' + error.what + '\0' + error.why + '\0' +
            error.where + '\0' + error.hint)
        .substr(0, longest_message);
}

Status from_message(std::string_view message) {
    if (message.empty()) return {};
    auto fields = fields_of(message);
    fields.resize(5);
    return fail({.what = fields[1],
                 .why = fields[2],
                 .where = fields[3],
                 .hint = fields[4],
                 .fault = static_cast<Fault>(to_number<int>(fields[0]).value_or(0))});
}

bool send_text(int channel, std::string_view text) {
    // An empty message could not be told from end of file.
    return send_message(channel, "=" + std::string(text), -1);
}

/// Waits for a message; false if an interrupt comes first.
bool wait_for_message(int channel) {
    std::array<pollfd, 2> polled{pollfd{channel, POLLIN, 0}, pollfd{interrupt_fd(), POLLIN, 0}};
    while (!interrupted()) {
        if (poll(polled.data(), polled.size(), -1) > 0 && polled[0].revents != 0) return true;
    }
    return false;
}

/// Returns the message with its "=", or "" at end of file.
std::string receive_text(int channel) {
    return receive_message(channel, longest_message + 1).text;
}

Status serve_images(std::span<const std::string> paths, const fs::path& mount_point,
                    fuse::HardLinks hard_links) {
    const auto layers = TRY(image::open_layers(std::vector<fs::path>(paths.begin(), paths.end())));
    auto connection = TRY(fuse::mount_fuse(mount_point));
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a server process");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        _exit(fuse::serve_fuse(*layers, connection, {.hard_links = hard_links}) == 0 ? 0 : 1);
    }
    return {};
}

Status make_layer_directories(const fs::path& staging) {
    for (const char* name : {"lower", upper_name, "work"})
        if (mkdir((staging / name).c_str(), 0755) != 0 && errno != EEXIST)
            return fail_errno("cannot create a staging directory", (staging / name).string());
    return {};
}

Status check_attributes(const fs::path& staging) {
    // Overlays mark opaque directories by an attribute. Without it the mount works, but loses deletions.
    const fs::path upper = staging / upper_name;
    constexpr const char* trial = "user.containerize";
    if (setxattr(upper.c_str(), trial, "", 0, 0) != 0)
        return fail_errno("the staging directory's filesystem has no extended attributes", upper.string());
    removexattr(upper.c_str(), trial);
    return {};
}

// Makes `directory` the working directory, which is what tree() names.
Status chdir_to(const fs::path& directory) {
    return chdir(directory.c_str()) == 0 ? Status()
                                         : fail_errno("cannot enter the directory", directory.string());
}

Status mount_overlay_here(std::span<const std::string> images, const fs::path& staging,
                          const fs::path& prefix) {
    TRY(make_layer_directories(staging));
    TRY(check_attributes(staging));
    TRY(serve_images(images, staging / "lower", fuse::HardLinks::one_file));
    // Relative paths, because commas and colons in a path would end a mount option.
    if (chdir(staging.c_str()) != 0)
        return fail_errno("cannot enter the staging directory", staging.string());
    const int mounted = mount("overlay", prefix.c_str(), "overlay", 0,
                              "userxattr,lowerdir=lower,upperdir=upper,workdir=work");
    const int error_number = errno;
    if (mounted == 0) return chdir_to(prefix);
    [[maybe_unused]] const int back = chdir("/");
    umount2((staging / "lower").c_str(), MNT_DETACH);
    return fail_errno("cannot mount an overlay", prefix.string(), error_number);
}

// Executes fuse-overlayfs for a mount that already exists, so that it needs no privileges. Logs its output.
[[noreturn]] void become_fuse_overlay(const char* program, int device, const fs::path& staging) {
    const Fd said(open((staging / fuse_overlay_log).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const std::string mount_point = "/dev/fd/" + std::to_string(device);
    if (said && dup2(said.get(), STDOUT_FILENO) >= 0 && dup2(said.get(), STDERR_FILENO) >= 0 &&
        fcntl(device, F_SETFD, 0) == 0 && chdir(staging.c_str()) == 0)
        execl(program, "fuse-overlayfs", "-f", "-o", "lowerdir=lower,upperdir=upper,workdir=work",
              mount_point.c_str(), nullptr);
    _exit(127);
}

Result<pid_t> start_fuse_overlay(const std::string& program, Fd device, const fs::path& staging) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a server process");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    become_fuse_overlay(program.c_str(), device.get(), staging);
}

constexpr auto longest_start = std::chrono::seconds(15);

// Waits until the new mount answers. stat() blocks until the server answers or the device's last descriptor
// is closed, and a signal to this process would not wake it: so a thread kills a server that is stuck. `said`
// is the log of the server's output.
Status wait_for_answer(pid_t server, const fs::path& mount_point, const fs::path& said) {
    std::atomic<bool> is_late = false;
    struct stat info {};
    int answered = -1, error_number = 0;
    {
        const std::jthread watch([&](const std::stop_token& stop) {
            std::mutex mutex;
            std::unique_lock lock(mutex);
            std::condition_variable_any().wait_for(lock, stop, longest_start, [] { return false; });
            if (stop.stop_requested()) return;
            is_late = true;
            kill(server, SIGKILL);
        });
        answered = stat(mount_point.c_str(), &info);
        error_number = errno;
    }
    if (answered == 0) return {};
    Error error{.what = "cannot start fuse-overlayfs"};
    error.why = is_late ? "it does not answer" : read_file(said).value_or("");
    if (error.why.empty()) error.why = std::strerror(error_number);
    return fail(std::move(error));
}

Status mount_fuse_overlay_here(std::span<const std::string> images, const fs::path& staging,
                               const fs::path& prefix, const std::string& program) {
    if (access(program.c_str(), X_OK) != 0) return fail_errno("cannot run fuse-overlayfs", program);
    TRY(make_layer_directories(staging));
    TRY(serve_images(images, staging / "lower", fuse::HardLinks::separate_files));
    Fd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
    if (!device) return fail_errno("cannot open the device", "/dev/fuse");
    // With allow_other, FUSE mounts are closed to processes outside of their user namespace, such as the
    // builder. Without it they are open to all processes of this user.
    const auto options = "fd=" + std::to_string(device.get()) +
                         ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                         ",group_id=" + std::to_string(getegid()) + ",default_permissions";
    if (mount("fuse-overlayfs", prefix.c_str(), "fuse.fuse-overlayfs", MS_NOSUID | MS_NODEV,
              options.c_str()) != 0)
        return fail_errno("cannot mount an overlay", prefix.string());
    const auto server = start_fuse_overlay(program, std::move(device), staging);
    auto ready =
        server ? wait_for_answer(*server, prefix, staging / fuse_overlay_log) : Status(fail(server.error()));
    if (ready) return chdir_to(prefix);
    ready.error().where = program;
    umount2(prefix.c_str(), MNT_DETACH);
    umount2((staging / "lower").c_str(), MNT_DETACH);
    return ready;
}

Status mount_image_here(const std::string& image, const fs::path& prefix) {
    TRY(serve_images(std::span(&image, 1), prefix, fuse::HardLinks::one_file));
    return chdir_to(prefix);
}

Status unmount_here(const fs::path& prefix) {
    TRY(chdir_to("/"));
    if (umount2(prefix.c_str(), MNT_DETACH) != 0)
        return fail_errno("cannot unmount the image", prefix.string());
    return chdir_to(prefix);
}

Status carry_out(const std::vector<std::string>& request, const mounts::OutsideView& outside) {
    if (request.at(0) == "image") return mount_image_here(request.at(1), request.at(2));
    if (request.at(0) == "unmount") return unmount_here(request.at(1));
    if (request.at(0) == "overlay")
        return mount_overlay_here(std::span(request).subspan(3), request.at(1), request.at(2));
    if (request.at(0) == "fuse-overlay")
        return mount_fuse_overlay_here(std::span(request).subspan(4), request.at(1), request.at(2),
                                       request.at(3));
    TRY(mounts::make_mount_point(request.at(2), mounts::rules_of_other_place(request.at(3), outside.look())));
    if (mount(request.at(1).c_str(), request.at(2).c_str(), nullptr, MS_BIND, nullptr) == 0)
        return chdir_to(request.at(2));
    return fail_errno("cannot bind the staging directory over the prefix", request.at(2));
}

std::string with_paths(std::string request, std::span<const fs::path> paths) {
    for (const auto& path : paths)
        request.append(1, '\0').append(path.string());
    return request;
}

[[noreturn]] void live_in_namespace(int channel, const std::function<Status()>& enter) {
    auto outside = mounts::OutsideView::keep();
    Status done = outside ? enter() : Status(fail(outside.error()));
    send_text(channel, to_message(done));
    while (done) {
        const auto request = receive_text(channel);
        if (request.empty()) break;
        send_text(channel, to_message(carry_out(fields_of(std::string_view(request).substr(1)), *outside)));
    }
    _exit(0);
}

} // namespace

Result<BuildNamespace> BuildNamespace::create(const std::function<Status()>& enter) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail_errno("cannot create a socket");
    Fd ours(ends[0]);
    Fd theirs(ends[1]);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a process for the build's namespace");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        // Ctrl-C at the terminal is for the builder only, which ends this process when it unwinds.
        setpgid(0, 0);
        ours.reset();
        // Otherwise this process would keep the builder's locks and pipes open after the builder's end.
        close_all_but(theirs.get());
        live_in_namespace(theirs.get(), enter);
    }
    theirs.reset();
    BuildNamespace made(pid, std::move(ours));
    const auto answer = receive_text(made.channel_.get());
    if (answer.empty())
        return fail({.what = "cannot create the build's namespace", .why = "its process died"});
    TRY(from_message(std::string_view(answer).substr(1)));
    return made;
}

Status BuildNamespace::ask(const std::string& request) {
    if (interrupted()) return fail_interrupted();
    std::string answer;
    if (send_text(channel_.get(), request)) {
        // Mounting may take long, because it depends on other programs.
        if (!wait_for_message(channel_.get())) return fail_interrupted();
        answer = receive_text(channel_.get());
    }
    if (answer.empty()) return fail({.what = "the build's namespace ended", .why = "its process died"});
    return from_message(std::string_view(answer).substr(1));
}

Status BuildNamespace::bind(const fs::path& directory, const fs::path& place, const fs::path& prefix) {
    const std::array paths = {directory, place, prefix};
    return ask(with_paths("bind", paths));
}

Status BuildNamespace::mount_image(const fs::path& image, const fs::path& prefix) {
    const std::array paths = {image, prefix};
    return ask(with_paths("image", paths));
}

Status BuildNamespace::unmount(const fs::path& prefix) {
    return ask(with_paths("unmount", std::span(&prefix, 1)));
}

Status BuildNamespace::mount_overlay(std::span<const fs::path> images, const fs::path& staging,
                                     const fs::path& prefix) {
    return ask(with_paths(std::string("overlay") + '\0' + staging.string() + '\0' + prefix.string(), images));
}

Status BuildNamespace::mount_fuse_overlay(const fs::path& program, std::span<const fs::path> images,
                                          const fs::path& staging, const fs::path& prefix) {
    return ask(with_paths(std::string("fuse-overlay") + '\0' + staging.string() + '\0' + prefix.string() +
                              '\0' + program.string(),
                          images));
}

fs::path BuildNamespace::tree() const {
    return "/proc/" + std::to_string(pid_) + "/cwd";
}

BuildNamespace::BuildNamespace(BuildNamespace&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

BuildNamespace& BuildNamespace::operator=(BuildNamespace&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(channel_, other.channel_);
    return *this;
}

BuildNamespace::~BuildNamespace() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

} // namespace containerize::environments
