#include "runtime/mounted_image.h"

#include "image/layers.h"
#include "runtime/engine.h"
#include "runtime/fuse_server.h"
#include "runtime/manifest.h"
#include "runtime/mount_point.h"

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
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

namespace fs = std::filesystem;

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

Status check_native(const Manifest& manifest, const std::string& prefix) {
    const auto wanted = parse_engine(manifest.engine);
    const auto insisted = engine_of_environment();
    const bool insists_on_native = insisted && *insisted == Engine::native;
    if (!wanted || !is_container_runtime(*wanted) || insists_on_native) return {};
    return fail({.what = "this installation is run by " + manifest.engine,
                 .why = {},
                 .where = prefix,
                 .hint = {},
                 .fault = Fault::engine});
}

// When the supervisor is killed, servers stay as long as processes use their mount, and end with them.
[[noreturn]] void outlive_supervisor(const std::vector<std::string>& mount_points) {
    while (namespace_in_use())
        std::this_thread::sleep_for(std::chrono::seconds(2));
    for (const auto& mount_point : mount_points)
        umount2(mount_point.c_str(), MNT_DETACH);
    for (;;)
        pause(); // the server's threads end the process once the last file is closed
}

} // namespace

void set_server_cleanup(void (*cleanup)(void*), void* argument) {
    server_cleanup = cleanup;
    server_cleanup_argument = argument;
}

Result<std::vector<std::string>>
MountedImage::other_mount_points(const Manifest& manifest, std::span<const MountedImage> others) const {
    std::vector<std::string> paths;
    for (const auto& path : {manifest.prefix, manifest.mask}) {
        if (path.empty() || path == plan_.prefix) continue;
        const auto owner = std::ranges::find_if(others, [&](const MountedImage& other) {
            return std::ranges::find(other.mount_points_, path.string()) != other.mount_points_.end();
        });
        if (owner != others.end()) {
            if (owner->digests_ == digests_) continue; // a copy of the same: what is there fits
            return fail({.what = "this installation must be shown where another one is in use",
                         .why = path.string() + " shows " + owner->plan_.prefix,
                         .where = plan_.prefix,
                         .hint = "Wait until nothing of the other runs any more (ten minutes, as a rule), or "
                                 "build this one again where it is."});
        }
        std::error_code failed;
        // The image would hide it from our programs.
        if (path == manifest.prefix && fs::exists(path, failed) && !fs::is_empty(path, failed))
            return fail({.what = "this installation was built for another place, where something else is now",
                         .why = "its programs name " + path.string(),
                         .where = plan_.prefix,
                         .hint = "Build it again at " + plan_.prefix + ", or move away what is there."});
        if (auto made = make_mount_point(path); !made) return fail(std::move(made.error()));
        paths.push_back(path);
    }
    return paths;
}

Result<MountedImage> MountedImage::mount(const std::string& prefix, std::span<const MountedImage> others) {
    MountedImage mounted;
    mounted.below_.reset(open(prefix.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!mounted.below_) return fail_errno("cannot open the installation", prefix);
    mounted.plan_.identity = manifest_identity(mounted.below_.get());
    auto manifest = read_manifest(prefix);
    if (!manifest) return fail(std::move(manifest.error()));
    if (auto ours = check_native(*manifest, prefix); !ours) return fail(std::move(ours.error()));
    mounted.plan_ = plan_of(*manifest, prefix, std::move(mounted.plan_.identity));

    auto images = open_images(*manifest, prefix);
    if (!images) return fail(std::move(images.error()));
    mounted.images_ = std::move(*images);

    for (const auto& image : manifest->images())
        mounted.digests_.push_back(image.sha256);
    auto further = mounted.other_mount_points(*manifest, others);
    if (!further) return fail(std::move(further.error()));
    auto connection = mount_fuse(prefix, geteuid(), getegid(), server_threads());
    if (!connection) return fail(std::move(connection.error()));
    mounted.connection_ = std::move(*connection);
    mounted.device_ = device_at(prefix);
    mounted.mount_points_.push_back(prefix);
    mounted.mount_points_.insert(mounted.mount_points_.end(), further->begin(), further->end());
    if (auto started = mounted.start_server(); !started) {
        mounted.unmount();
        return fail(std::move(started.error()));
    }
    for (const auto& other : *further) {
        if (::mount(prefix.c_str(), other.c_str(), nullptr, MS_BIND, nullptr) == 0) continue;
        auto error = fail_errno("cannot show the installation at its other path", other);
        mounted.unmount();
        return error;
    }
    return mounted;
}

Status MountedImage::start_server() {
    const pid_t supervisor = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail_errno("cannot start a server process");
    if (pid > 0) {
        server_ = pid;
        return {};
    }
    // The supervisor's death is told by a signal that one thread waits for.
    sigset_t signals;
    sigfillset(&signals);
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != supervisor) raise(SIGUSR1);
    const FuseConnection connection = std::move(connection_); // the cleanup closes those of all images
    if (server_cleanup != nullptr) server_cleanup(server_cleanup_argument);

    auto layers = image::Layers::open(std::move(images_));
    // Seldom seen after open_images(); the supervisor counts it as a death, and gives up after a while.
    if (!layers) _exit(1);
    std::thread([this] {
        sigset_t death;
        sigemptyset(&death);
        sigaddset(&death, SIGUSR1);
        int signal = 0;
        sigwait(&death, &signal);
        outlive_supervisor(mount_points_);
    }).detach();
    _exit(serve_fuse(**layers, connection, {.uid = geteuid(), .gid = getegid()}) == 0 ? 0 : 1);
}

bool MountedImage::current() const {
    return manifest_identity(below_.get()) == plan_.identity && device_at(plan_.prefix) == device_;
}

Status MountedImage::revive() {
    server_ = 0;
    const auto now = std::chrono::steady_clock::now();
    deaths_.push_back(now);
    std::erase_if(deaths_, [now](auto when) { return now - when > deaths_window; });
    Status done;
    if (!connection_.features.resend)
        done = fail(
            {.what = "the server of an image died, and this kernel cannot hand its requests to another one",
             .why = "that needs Linux 6.9",
             .where = plan_.prefix,
             .hint = {}});
    else if (deaths_.size() > deaths_allowed)
        done = fail(
            {.what = "the servers of an image keep dying", .why = {}, .where = plan_.prefix, .hint = {}});
    else if (done = start_server(); done)
        done = resend_requests(connection_);
    if (!done) {
        unmount();
        close_devices(); // the last descriptor: the kernel now fails what waits for an answer
    }
    return done;
}

void MountedImage::unmount() {
    for (const auto& mount_point : mount_points_)
        umount2(mount_point.c_str(), MNT_DETACH);
    mount_points_.clear();
}

bool namespace_in_use() {
    const auto link = [](const std::string& path) {
        std::array<char, 512> target;
        const auto size = readlink(path.c_str(), target.data(), target.size());
        return std::string(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    };
    const std::string mounts = link("/proc/self/ns/mnt");
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
