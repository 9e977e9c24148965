// A FUSE mount, from its first mount() to its last descriptor: made inside a user namespace, without
// fusermount.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace containerize::runtime {

/// What the kernel said in its first message. It is said once, to the supervisor: a server that is started
/// again later could not ask, so it is told.
struct FuseFeatures {
    bool resend =
        false; ///< FUSE_NOTIFY_RESEND (Linux 6.9): a successor can answer what its predecessor did not
    bool no_opendir = false; ///< opendir may be answered once and for all with ENOSYS (Linux 5.1)
};

struct FuseConnection {
    /// One descriptor a server thread; requests that were read from one must be answered on the same.
    std::vector<Fd> devices;
    FuseFeatures features;
};

/// Mounts a read-only FUSE filesystem over `mount_point` and answers the kernel's first message. The caller
/// must be in a user namespace of its own, where its uid and gid are `owner` and `group`. The message names
/// /dev/fuse or the mount point and what is wrong with it.
Result<FuseConnection> mount_fuse(const std::filesystem::path& mount_point, uid_t owner, gid_t group,
                                  unsigned threads);

/// Begins to serve a mount that somebody else made with this descriptor: answers the kernel's first message.
Result<FuseConnection> connect_fuse(Fd device, unsigned threads);

/// Asks the kernel to hand out again every request that was read but not answered.
Status resend_requests(const FuseConnection& connection);

} // namespace containerize::runtime
