// The namespace that a build runs its programs in: there the environment in the making stands at its prefix.
#pragma once

#include "runtime/root.h"
#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <sys/types.h>

namespace containerize::runtime {

/// A process that keeps new user and mount namespaces alive and mounts in them what it is told to. Other
/// processes join it by `pid()`. It is made before anything else has threads. Killed by the destructor, and
/// with it goes what it mounted.
class BuildNamespace {
public:
    static Result<BuildNamespace> create();
    /// With a root of its own, put together in `work`, an empty directory.
    static Result<BuildNamespace> create(const RootRequest& root, const std::filesystem::path& work);
    BuildNamespace(BuildNamespace&& other) noexcept;
    BuildNamespace& operator=(BuildNamespace&& other) noexcept;
    ~BuildNamespace();

    /// Binds `directory` over `place`, which is made to exist in there if it does not: the installation's
    /// prefix, or another path that it is shown at.
    Status bind(const std::filesystem::path& directory, const std::filesystem::path& place,
                const std::filesystem::path& prefix);
    /// Mounts `images` (the lowest first) and over them a writable layer, together at `prefix`. What is
    /// changed there lands in "upper" in `staging`, or was left there by an earlier such mount; "lower" and
    /// "work" are made there, too. Fails where this
    /// kernel (before Linux 5.11) does not let users mount overlays, or staging's filesystem has no extended
    /// attributes.
    Status mount_overlay(std::span<const std::filesystem::path> images, const std::filesystem::path& staging,
                         const std::filesystem::path& prefix);
    /// The same by `program`, which is fuse-overlayfs: where the kernel refuses. No rights and no extended
    /// attributes are needed, but what "upper" has is in that program's form.
    Status mount_fuse_overlay(const std::filesystem::path& program,
                              std::span<const std::filesystem::path> images,
                              const std::filesystem::path& staging, const std::filesystem::path& prefix);

    /// What was bound or mounted last, an overlay or a directory, for this process. (By its path it might be
    /// out of reach: the way there may lead through a mount that is closed to all who are not in the
    /// namespace.)
    [[nodiscard]] std::filesystem::path tree() const;
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    static Result<BuildNamespace> create_with(const std::function<Status()>& set_up);
    BuildNamespace(pid_t pid, Fd channel) : pid_(pid), channel_(std::move(channel)) {}
    Status ask(const std::string& request);

    pid_t pid_ = -1;
    Fd channel_; ///< requests to the process, and its answers
};

} // namespace containerize::runtime
