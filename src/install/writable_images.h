// An installation's images at its prefix, with a writable layer over them, inside a build's namespace.
#pragma once

#include "image/changes.h"
#include "install/recipe.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <ctime>
#include <filesystem>
#include <vector>

namespace containerize::install {

class WritableImages {
public:
    /// Where overlays cannot be had, everything is copied to disk, and the user is told.
    static Result<WritableImages> mount(Workshop& shop, const runtime::Manifest& manifest);
    /// Of `images` (the lowest first), which are shown at `mask`, too, if there is one.
    static Result<WritableImages> mount(Workshop& shop, std::vector<std::filesystem::path> images,
                                        const std::filesystem::path& mask);

    /// What differs by now from the images.
    [[nodiscard]] Result<image::Changes> changes(mode_t umask_bits) const;

private:
    Status copy(Workshop& shop);

    std::filesystem::path staging_;
    std::vector<std::filesystem::path> images_; ///< the lowest first
    bool copied_ = false;                       ///< a tree on disk stands at the prefix
    timespec copied_at_{};
};

} // namespace containerize::install
