// One installation as a session holds it: its mount and the server process.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "launch/launch_plan.h"
#include "manifest/manifest.h"
#include "mounts/outside_view.h"
#include "mounts/served_mount.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace containerize::session {

/// An installation as it is on disk, where a mount hides it later.
struct InstallationOnDisk {
    std::string prefix;
    Fd directory;
    std::string identity; ///< launch::manifest_identity()
    manifest::Manifest manifest;
};
/// Takes the manifest from `earlier`, which may be null, if it is still the same file.
Result<InstallationOnDisk> open_installation(const std::string& prefix,
                                             const InstallationOnDisk* earlier = nullptr);

class MountedImage {
public:
    /// Mounts the images of an installation at its prefix and starts the server. The caller is the session's
    /// supervisor, single-threaded and in the session's namespaces. `others` are the installations
    /// that the session already holds: no two can be shown at one path. `root` is what the session's root
    /// changes in the environment; `outside` knows the owners of files. Fails with Fault::engine if a
    /// container runtime has to run the installation.
    static Result<MountedImage> mount(InstallationOnDisk installation, std::span<const MountedImage> others,
                                      const std::vector<launch::EnvironmentChange>& root,
                                      const mounts::OutsideView& outside);
    /// Whether mounting it would replace the root of this namespace (make_mount_point).
    static bool needs_new_root(const manifest::Manifest& manifest);
    MountedImage(MountedImage&&) = default;
    MountedImage& operator=(MountedImage&&) = default;

    [[nodiscard]] const launch::LaunchPlan& plan() const { return plan_; }
    /// Whether the installation on disk, which the mount hides, is still the mounted one, and its mounts are
    /// in place: a mount moves with the directory that it lies on.
    [[nodiscard]] bool current() const;

    [[nodiscard]] const std::vector<std::string>& mount_points() const { return served_->mount_points(); }
    [[nodiscard]] mounts::ServedMount& served() { return *served_; }
    [[nodiscard]] const mounts::ServedMount& served() const { return *served_; }
    [[nodiscard]] const fuse::ServerStatistics* statistics() const { return served_->statistics(); }
    /// How the images were mounted, for the session's log.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    MountedImage() = default;
    /// Makes the other paths exist at which the images must be shown and are not yet, and returns them: the
    /// original prefix, and the directory that the images mask.
    [[nodiscard]] Result<std::vector<std::string>>
    other_mount_points(const manifest::Manifest& manifest, std::span<const MountedImage> others,
                       const mounts::OutsideView& outside) const;

    /// Mounts the images at the prefix: by the kernel if that is wanted and possible, else by FUSE.
    Status show(const manifest::Manifest& manifest, std::vector<image::Layers::ImageFile> images,
                bool staged);
    /// Replaces images by copies on this node, if the environment or the manifest asks for it. Returns
    /// whether all are copies.
    Result<bool> stage(const manifest::Manifest& manifest, std::vector<image::Layers::ImageFile>& images);

    launch::LaunchPlan plan_;
    std::vector<std::string> notes_;
    std::vector<std::string> digests_;          ///< of the images, the lowest first
    Fd below_;                                  ///< the installation's directory as it is on disk
    std::optional<mounts::ServedMount> served_; ///< empty only before the images are mounted
};

} // namespace containerize::session
