// A FUSE connection: mounting inside a user namespace without fusermount, and the device's descriptors.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <filesystem>
#include <vector>

namespace containerize::fuse {

/// Features that the kernel offers in FUSE_INIT. It sends that message once, to the supervisor; servers that
/// are started later learn them from here.
struct FuseFeatures {
    bool resend = false;     ///< FUSE_NOTIFY_RESEND (Linux 6.9): a successor gets unanswered requests again
    bool no_opendir = false; ///< opendir may be answered with ENOSYS, once and for all (Linux 5.1)
};

struct [[nodiscard]] FuseConnection {
    /// One for each server thread. A request must be answered on the descriptor that it was read from.
    std::vector<Fd> devices;
    FuseFeatures features;
};

/// The number of server threads for the CPUs that this process may use.
unsigned server_threads();

/// Mounts a read-only FUSE filesystem over `mount_point` and answers FUSE_INIT. The caller must have the
/// right to mount in its namespace. Fails with Fault::engine if the kernel refuses; the error names /dev/fuse
/// or the mount point.
Result<FuseConnection> mount_fuse(const std::filesystem::path& mount_point,
                                  unsigned threads = server_threads());

/// Connects to a mount that another process made with `device`: answers FUSE_INIT.
Result<FuseConnection> connect_fuse(Fd device, unsigned threads = server_threads());

/// Asks the kernel to resend every request that was read but not answered.
Status resend_requests(const FuseConnection& connection);

} // namespace containerize::fuse
