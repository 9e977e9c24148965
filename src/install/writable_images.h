// An installation's images at its prefix, with a writable layer over them, inside a build's namespace.
#pragma once

#include "image/changes.h"
#include "install/recipe.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <filesystem>
#include <vector>

namespace containerize::install {

class WritableImages {
public:
    /// By the kernel's overlay; where that cannot be had by fuse-overlayfs; without that everything is copied
    /// to disk. The user is told.
    static Result<WritableImages> mount(Workshop& shop, const runtime::Manifest& manifest);
    /// Of `images` (the lowest first), which are shown at `mask`, too, if there is one.
    static Result<WritableImages> mount(Workshop& shop, std::vector<std::filesystem::path> images,
                                        const std::filesystem::path& mask);

    /// What differs by now from the images.
    [[nodiscard]] Result<image::Changes> changes(mode_t umask_bits) const;
    /// The tree on disk that stands at the prefix; empty for an overlay.
    [[nodiscard]] std::filesystem::path copy() const;

private:
    enum class Means { overlay, fuse_overlay, copy };
    Status mount_without_overlay(Workshop& shop, const std::string& why);
    Status make_copy(Workshop& shop);

    std::filesystem::path staging_;
    std::filesystem::path merged_;              ///< what stands at the prefix
    std::vector<std::filesystem::path> images_; ///< the lowest first
    Means means_ = Means::overlay;
    image::Snapshot as_copied_; ///< of a copy
};

} // namespace containerize::install
