// One installation as a session holds it: its mount, and the server process that answers for it.
#pragma once

#include "runtime/launch_plan.h"
#include "runtime/manifest.h"
#include "runtime/outside_view.h"
#include "runtime/served_mount.h"
#include "util/error.h"
#include "util/fd.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace containerize::runtime {

class MountedImage {
public:
    /// Reads the manifest at `prefix`, mounts its images there and starts the server. The caller is the
    /// session's supervisor, single-threaded and in the session's namespaces.
    /// `others` are those that the session holds already: two installations cannot be shown at one path.
    /// `root` is what the session's root needs of every launch's environment; `outside` knows the owners of
    /// files.
    static Result<MountedImage> mount(const std::string& prefix, std::span<const MountedImage> others,
                                      const std::vector<EnvironmentChange>& root, const OutsideView& outside);
    /// Whether mounting it would give this namespace a new root (make_mount_point).
    static bool needs_new_root(const std::string& prefix);
    MountedImage(MountedImage&&) = default;
    MountedImage& operator=(MountedImage&&) = default;

    [[nodiscard]] const LaunchPlan& plan() const { return plan_; }
    /// Whether the installation on disk, which the mount hides, is still the one that is mounted, and the
    /// mount still at its prefix: it moves with the directory that it lies on.
    [[nodiscard]] bool current() const;

    [[nodiscard]] const std::vector<std::string>& mount_points() const { return served_->mount_points(); }
    [[nodiscard]] ServedMount& served() { return *served_; }
    [[nodiscard]] const ServedMount& served() const { return *served_; }
    [[nodiscard]] const ServerStatistics* statistics() const { return served_->statistics(); }
    /// What could not be done as it was asked for.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    MountedImage() = default;
    /// Where the images must be beside their prefix, and are not yet: where they were built for, and at the
    /// directory that they mask.
    [[nodiscard]] Result<std::vector<std::string>> other_mount_points(const Manifest& manifest,
                                                                      std::span<const MountedImage> others,
                                                                      const OutsideView& outside) const;

    /// By the kernel where that is wanted and can be done, else by FUSE.
    Status show(const Manifest& manifest, std::vector<image::Layers::ImageFile> images, bool staged);
    /// Puts copies on this node in place of images, if the environment asks for it; whether all are copies
    /// then.
    Result<bool> stage(const Manifest& manifest, std::vector<image::Layers::ImageFile>& images);

    LaunchPlan plan_;
    std::vector<std::string> notes_;
    std::vector<std::string> digests_;  ///< of the images, the lowest first
    Fd below_;                          ///< the installation's directory as it is on disk
    std::optional<ServedMount> served_; ///< always, once it is mounted
};

} // namespace containerize::runtime
