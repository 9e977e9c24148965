// Mounts an installation's images at its prefix in a build's namespace, with a writable layer over them.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"
#include "image/changes.h"
#include "manifest/manifest.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace containerize::environments {

class WritableImages {
public:
    /// Uses the kernel's overlayfs, otherwise fuse-overlayfs, otherwise a copy on disk. Tells the user if it
    /// is not the first.
    static Result<WritableImages> mount(BuildContext& context, const manifest::Manifest& manifest);
    /// Mounts `images`, lowest first; also at `mask` unless that is empty.
    static Result<WritableImages> mount(BuildContext& context, std::vector<std::filesystem::path> images,
                                        const std::filesystem::path& mask);

    /// Shows the writable layer of a later mount() at the prefix, without images yet.
    static Status bind_upper(BuildContext& context);

    /// Removes the mounts, so that the prefix shows again what was there before. Not possible with a copy.
    Status unmount(BuildContext& context) const;
    /// Lets `change` add files to the images: unmounts them before, and mounts them again afterwards, below
    /// the same writable layer. No program may run at the prefix. A copy is made anew, without changes.
    Status remount(BuildContext& context, const std::function<Status()>& change);
    /// The paths that the writable layer replaces or hides in the images, with all that is below them.
    /// nullopt: any path can be hidden by it.
    [[nodiscard]] Result<std::optional<std::set<std::string>>> taken(mode_t umask_bits) const;

    /// The differences between the mounted tree and the images.
    [[nodiscard]] Result<image::Changes> changes(mode_t umask_bits) const;
    /// Packs what the tree has become. `writer` holds what the images had when they were mounted, and is used
    /// up.
    Result<image::WriteStats> pack(std::optional<image::Writer>& writer, const std::filesystem::path& image,
                                   const image::WriterOptions& options, mode_t umask_bits,
                                   const image::PackProgress& progress) const;
    /// The writable layer; with a copy, all of it.
    [[nodiscard]] std::filesystem::path written() const;
    /// The copy on disk that is mounted at the prefix; empty if an overlay is used.
    [[nodiscard]] std::filesystem::path copy() const;

private:
    enum class Means { overlay, fuse_overlay, copy };
    Status mount_without_overlay(BuildContext& context, const std::string& why);
    Status mount_again(BuildContext& context);
    Status make_copy(BuildContext& context);
    [[nodiscard]] Status empty_copy() const;
    [[nodiscard]] Status copy_upper() const;

    std::filesystem::path staging_;
    std::filesystem::path merged_;              ///< the tree at the prefix
    std::vector<std::filesystem::path> images_; ///< lowest first
    Means means_ = Means::overlay;
    std::filesystem::path fuse_overlay_program_;
    image::Snapshot as_copied_; ///< for a copy: its initial state
};

} // namespace containerize::environments
