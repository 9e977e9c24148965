// Mounting images by the kernel's own squashfs, which saves the cost of a server. Only for root: a bad image
// could compromise the kernel, so nobody but root may be able to write it.
#pragma once

#include "core/error.h"
#include "image/layers.h"
#include "manifest/manifest.h"

#include <filesystem>

namespace containerize::mounts {

/// Whether to mount the installation at `prefix` by the kernel: the caller is root, the manifest says so
/// (`kernel_mount`), there are no layers, and root alone can have written the image and the manifest.
bool is_for_kernel_mount(const manifest::Manifest& manifest, const std::filesystem::path& prefix);

/// Mounts an image by a loop device, which is freed with the mount. The caller needs CAP_SYS_ADMIN in the
/// initial user namespace.
Status mount_by_kernel(const image::Layers::ImageFile& image, const std::filesystem::path& mount_point);

} // namespace containerize::mounts
