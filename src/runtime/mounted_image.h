// One installation as a session holds it: its mount, and the server process that answers for it.
#pragma once

#include "image/layers.h"
#include "runtime/fuse_connection.h"
#include "runtime/launch_plan.h"
#include "runtime/manifest.h"
#include "util/error.h"
#include "util/fd.h"

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::runtime {

class MountedImage {
public:
    /// Reads the manifest at `prefix`, mounts its images there and starts the server. The caller is the
    /// session's supervisor, single-threaded and in the session's namespaces.
    /// `others` are those that the session holds already: two installations cannot be shown at one path.
    static Result<MountedImage> mount(const std::string& prefix, std::span<const MountedImage> others);
    /// Whether mounting it would give this namespace a new root (make_mount_point).
    static bool needs_new_root(const std::string& prefix);
    MountedImage(MountedImage&&) = default;
    MountedImage& operator=(MountedImage&&) = default;

    [[nodiscard]] const LaunchPlan& plan() const { return plan_; }
    [[nodiscard]] pid_t server() const { return server_; }
    /// Whether the installation on disk, which the mount hides, is still the one that is mounted, and the
    /// mount still at its prefix: it moves with the directory that it lies on.
    [[nodiscard]] bool current() const;

    /// After the server died: starts a successor on the same descriptors and has the kernel hand out again
    /// what the dead one had not answered. Fails where the kernel cannot (before Linux 6.9), or where servers
    /// keep dying: the mount is then given up, and its processes see an error instead of waiting for ever.
    Status revive();
    /// Takes the mount away from this namespace. Files that are open stay readable; the server ends after the
    /// last one.
    void unmount();
    /// The server has ended, as it does when nothing uses the mount any more.
    void forget_server() { server_ = 0; }
    /// In a process that is not this image's server: lets go of its descriptors.
    void close_devices() { connection_.devices.clear(); }

private:
    MountedImage() = default;
    Status start_server();
    /// Where the images must be beside their prefix, and are not yet: where they were built for, and at the
    /// directory that they mask.
    [[nodiscard]] Result<std::vector<std::string>>
    other_mount_points(const Manifest& manifest, std::span<const MountedImage> others) const;

    LaunchPlan plan_;
    std::vector<std::string> digests_;      ///< of the images, the lowest first
    dev_t device_ = 0;                      ///< of the mount
    std::vector<std::string> mount_points_; ///< where it is, and where it was built for, if that differs
    Fd below_;                              ///< the installation's directory as it is on disk
    std::vector<image::Layers::ImageFile> images_; ///< the lowest first
    FuseConnection connection_;
    pid_t server_ = 0;
    std::vector<std::chrono::steady_clock::time_point> deaths_;
};

/// Called in every new server process, before it serves: to let go of what only the supervisor needs.
void set_server_cleanup(void (*cleanup)(void*), void* argument);

/// Whether `process` is in the caller's mount namespace.
bool is_in_this_namespace(pid_t process);

/// Whether a process other than sessions' own runs in the caller's mount namespace.
bool namespace_in_use();

} // namespace containerize::runtime
