// The namespaces in which a build runs its programs, with the unfinished environment mounted at its prefix.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "launch/namespace.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <sys/types.h>

namespace containerize::environments {

/// The directory of a writable layer in its staging directory.
inline constexpr const char* upper_name = "upper";

/// A process that keeps new user and mount namespaces alive and mounts in them on request. Other processes
/// join it by `pid()`. Create it while the caller is single-threaded. The destructor kills the process, and
/// its mounts go with it.
class [[nodiscard]] BuildNamespace {
public:
    /// `enter` takes the new process into its namespaces.
    static Result<BuildNamespace> create(const std::function<Status()>& enter = launch::enter_namespaces);
    BuildNamespace(BuildNamespace&& other) noexcept;
    BuildNamespace& operator=(BuildNamespace&& other) noexcept;
    ~BuildNamespace();

    /// Binds `directory` over `place`: the prefix of the installation at `prefix`, or another path at which
    /// it is shown. Creates `place` inside the namespace if it is missing.
    Status bind(const std::filesystem::path& directory, const std::filesystem::path& place,
                const std::filesystem::path& prefix);
    /// Mounts `image` at `prefix`, for reading only. It must stay as it is until unmount().
    Status mount_image(const std::filesystem::path& image, const std::filesystem::path& prefix);
    /// Removes what was mounted last at `prefix`.
    Status unmount(const std::filesystem::path& prefix);
    /// Mounts an overlay at `prefix`: `images` (the lowest first) below a writable layer. Changes go to
    /// "upper" in `staging`, which may hold those of an earlier mount; "lower" and "work" are created there,
    /// too. Fails if the kernel does not let users mount overlays (before Linux 5.11), or if the filesystem
    /// of `staging` has no extended attributes.
    Status mount_overlay(std::span<const std::filesystem::path> images, const std::filesystem::path& staging,
                         const std::filesystem::path& prefix);
    /// The same with fuse-overlayfs (`program`), for where the kernel refuses. It needs neither privileges
    /// nor extended attributes, but "upper" is then in that program's format.
    Status mount_fuse_overlay(const std::filesystem::path& program,
                              std::span<const std::filesystem::path> images,
                              const std::filesystem::path& staging, const std::filesystem::path& prefix);

    /// What was bound or mounted last, as a path for processes outside the namespace. (The ordinary path may
    /// lead through a FUSE mount, which is closed to them.)
    [[nodiscard]] std::filesystem::path tree() const;
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    BuildNamespace(pid_t pid, Fd channel) : pid_(pid), channel_(std::move(channel)) {}
    Status ask(const std::string& request);

    pid_t pid_ = -1;
    Fd channel_; ///< requests to the process, and its answers
};

} // namespace containerize::environments
