#include "mounts/kernel_mount.h"

#include "core/fd.h"
#include "core/ownership.h"

#include <cerrno>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

/// Attempts to get a loop device: others may take the one that the kernel just named.
constexpr int tries = 64;

/// Whether nobody but root can change or replace `path`, now or while it is mounted.
bool is_roots_alone(const std::filesystem::path& path) {
    return !find_foreign(path.string(), {.must_stay = true});
}

/// While the lease is held, nobody has the file open for writing. Otherwise a process that opened it before
/// it became root's could still change an image that the kernel trusts.
class ReadLease {
public:
    explicit ReadLease(const Fd& file)
        : file_(file.get()), before_(std::signal(SIGIO, SIG_IGN)), // sent when somebody waits for the lease
          held_(fcntl(file_, F_SETLEASE, F_RDLCK) == 0) {}
    ReadLease(const ReadLease&) = delete;
    ReadLease& operator=(const ReadLease&) = delete;
    ~ReadLease() {
        if (held_) fcntl(file_, F_SETLEASE, F_UNLCK);
        std::signal(SIGIO, before_);
    }
    [[nodiscard]] bool is_held() const { return held_; }

private:
    int file_;
    void (*before_)(int);
    bool held_;
};

/// LOOP_SET_FD and LOOP_SET_STATUS64 exist in every kernel; LOOP_CONFIGURE does both, from Linux 5.8 on.
Status bind_loop(const Fd& device, const std::string& name, const image::Layers::ImageFile& image) {
    loop_info64 settings{};
    settings.lo_offset = image.offset;
    settings.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
    image.path.string().copy(reinterpret_cast<char*>(settings.lo_file_name), LO_NAME_SIZE - 1);
    if (ioctl(device.get(), LOOP_SET_STATUS64, &settings) == 0) return {};
    auto failed = fail_errno("cannot set up a loop device", name);
    ioctl(device.get(), LOOP_CLR_FD, 0);
    return failed;
}

struct Loop {
    Fd device; ///< keeps the loop device until it is mounted
    std::string name;
};

Result<Loop> make_loop(const image::Layers::ImageFile& image) {
    const Fd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (!control) return fail_errno("cannot request a loop device", "/dev/loop-control");
    for (int tried = 0; tried < tries; ++tried) {
        const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (number < 0) return fail_errno("there is no free loop device", "/dev/loop-control");
        Loop loop{.device = {}, .name = "/dev/loop" + std::to_string(number)};
        loop.device.reset(open(loop.name.c_str(), O_RDONLY | O_CLOEXEC));
        if (!loop.device) return fail_errno("cannot open a loop device", loop.name);
        if (ioctl(loop.device.get(), LOOP_SET_FD, image.file.get()) != 0) {
            if (errno == EBUSY) continue;
            return fail_errno("cannot attach the image to a loop device", loop.name);
        }
        TRY(bind_loop(loop.device, loop.name, image));
        return loop;
    }
    return fail_errno("other processes took every free loop device", "/dev/loop-control", EBUSY);
}

} // namespace

bool is_for_kernel_mount(const manifest::Manifest& manifest, const std::filesystem::path& prefix) {
    return geteuid() == 0 && manifest.settings.kernel_mount && manifest.layers.empty() &&
           is_roots_alone(prefix / launch::manifest_name) && is_roots_alone(prefix / manifest.image.file);
}

Status mount_by_kernel(const image::Layers::ImageFile& image, const std::filesystem::path& mount_point) {
    const ReadLease lease(image.file);
    if (!lease.is_held())
        return fail_errno(errno == EAGAIN ? "a process has the image open for writing"
                                          : "cannot check whether a process has the image open for writing",
                          image.path.string());
    auto loop = TRY(make_loop(image));
    if (mount(loop.name.c_str(), mount_point.c_str(), "squashfs", MS_RDONLY | MS_NODEV | MS_NOSUID,
              nullptr) != 0)
        return fail_errno("the kernel cannot mount the image", image.path.string());
    return {};
}

} // namespace containerize::mounts
