#include "fuse/connection.h"

#include "core/cpus.h"
#include "core/filesystem.h"
#include "fuse/server_deaths.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace containerize::fuse {

namespace {

// Missing in the headers of Debian 12 (Linux 6.1).
constexpr std::uint64_t fuse_has_resend = std::uint64_t{1} << 39U;
constexpr int fuse_notify_resend = 7;

constexpr std::uint32_t largest_read = 1U << 20U;
/// Limit of concurrent read-ahead requests; the kernel's default of 12 starves parallel ranks.
constexpr std::uint16_t background_requests = 64;

std::unexpected<Error> no_device(int error_number) {
    Error error{.what = "cannot open /dev/fuse", .why = std::strerror(error_number), .fault = Fault::engine};
    if (error_number == ENOENT || error_number == ENODEV || error_number == ENXIO)
        error.hint =
            "The kernel's FUSE module is not loaded. An administrator can load it with `modprobe fuse`.";
    else if (error_number == EACCES || error_number == EPERM)
        error.hint = "Users need read and write permission on /dev/fuse. An administrator can grant it with "
                     "`chmod 666 /dev/fuse`.";
    error.hint +=
        std::string(error.hint.empty() ? "" : "\n") + "`containerize doctor` shows what this machine allows.";
    return fail(std::move(error));
}

std::uint64_t wanted_flags(std::uint64_t offered) {
    return offered & (std::uint64_t{FUSE_ASYNC_READ} | FUSE_PARALLEL_DIROPS | FUSE_DO_READDIRPLUS |
                      FUSE_CACHE_SYMLINKS | FUSE_MAX_PAGES | FUSE_NO_OPEN_SUPPORT | FUSE_NO_OPENDIR_SUPPORT |
                      std::uint64_t{FUSE_INIT_EXT} | fuse_has_resend);
}

// Reads and answers FUSE_INIT, which the kernel queued before mount() returned.
Result<FuseFeatures> answer_init(int device) {
    struct {
        fuse_in_header header;
        fuse_init_in body; // kernels before 5.17 send only its beginning; the rest stays zero
        std::array<std::byte, FUSE_MIN_READ_BUFFER> room; // the kernel refuses to fill less
    } message{};
    ssize_t got = 0;
    do
        got = read(device, &message, sizeof message);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fail_errno("cannot read the kernel's first message", "/dev/fuse");

    const auto& header = message.header;
    const auto& in = message.body;
    if (header.opcode != FUSE_INIT || in.major != FUSE_KERNEL_VERSION)
        return fail({.what = "the kernel uses an unknown FUSE protocol",
                     .why = "version " + std::to_string(in.major) + "." + std::to_string(in.minor),
                     .where = "/dev/fuse"});

    std::uint64_t offered = in.flags;
    if ((in.flags & FUSE_INIT_EXT) != 0) offered |= std::uint64_t{in.flags2} << 32U;
    const std::uint64_t flags = wanted_flags(offered);

    fuse_init_out out{};
    out.major = FUSE_KERNEL_VERSION;
    out.minor = std::min<std::uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
    out.max_readahead = in.max_readahead;
    out.flags = static_cast<std::uint32_t>(flags);
    out.flags2 = static_cast<std::uint32_t>(flags >> 32U);
    out.max_background = background_requests;
    out.congestion_threshold = background_requests / 4 * 3;
    out.max_write = 4096; // nothing is ever written, and a server's buffers must be larger than this
    out.time_gran = 1;
    out.max_pages =
        static_cast<std::uint16_t>(largest_read / static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)));
    struct {
        fuse_out_header header;
        fuse_init_out body;
    } reply{.header = {.len = sizeof reply, .error = 0, .unique = header.unique}, .body = out};
    if (write(device, &reply, sizeof reply) != static_cast<ssize_t>(sizeof reply))
        return fail_errno("cannot answer the kernel's first message", "/dev/fuse");
    return FuseFeatures{.resend = (flags & fuse_has_resend) != 0,
                        .no_opendir = (flags & FUSE_NO_OPENDIR_SUPPORT) != 0};
}

} // namespace

unsigned server_threads() {
    constexpr unsigned most_threads = 8;
    // At least two: one may wait for the image while the other answers from the cache.
    static_assert(most_threads <= ServerProgress::most_threads);
    return std::clamp(static_cast<unsigned>(allowed_cpus().size()), 2U, most_threads);
}

Result<FuseConnection> mount_fuse(const std::filesystem::path& mount_point, unsigned threads) {
    // mount() requires the device to have been opened in the mount's user namespace.
    Fd first(open("/dev/fuse", O_RDWR | O_CLOEXEC));
    if (!first) return no_device(errno);
    const std::string options = "fd=" + std::to_string(first.get()) +
                                ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                                ",group_id=" + std::to_string(getegid()) +
                                ",default_permissions,allow_other,max_read=" + std::to_string(largest_read);
    if (mount("containerize", mount_point.c_str(), own_fuse_type, MS_RDONLY | MS_NOSUID | MS_NODEV,
              options.c_str()) != 0) {
        const int error_number = errno;
        auto error = fail_errno("cannot mount the image", mount_point.string(), error_number);
        if (error_number == EPERM || error_number == EACCES || error_number == ENODEV) {
            error.error().fault = Fault::engine;
            error.error().hint =
                "FUSE mounts inside user namespaces need Linux 4.18 or newer.\n`containerize doctor` "
                "shows what this machine allows.";
        }
        return error;
    }
    auto connection = connect_fuse(std::move(first), threads);
    if (!connection) umount2(mount_point.c_str(), MNT_DETACH);
    return connection;
}

Result<FuseConnection> connect_fuse(Fd device, unsigned threads) {
    FuseConnection connection;
    connection.features = TRY(answer_init(device.get()));
    std::uint32_t source = static_cast<std::uint32_t>(device.get());
    connection.devices.push_back(std::move(device));
    // Cloned here and not in the server: when a killed server closes the last descriptor of a clone, the
    // requests read from it fail instead of waiting for a successor.
    while (connection.devices.size() < threads) {
        Fd clone(open("/dev/fuse", O_RDWR | O_CLOEXEC));
        if (!clone || ioctl(clone.get(), FUSE_DEV_IOC_CLONE, &source) != 0) break; // fewer threads will do
        connection.devices.push_back(std::move(clone));
    }
    return connection;
}

Status resend_requests(const FuseConnection& connection) {
    const fuse_out_header notice{.len = sizeof notice, .error = fuse_notify_resend, .unique = 0};
    if (write(connection.devices.front().get(), &notice, sizeof notice) !=
        static_cast<ssize_t>(sizeof notice))
        return fail_errno("the kernel cannot resend requests", "/dev/fuse");
    return {};
}

} // namespace containerize::fuse
