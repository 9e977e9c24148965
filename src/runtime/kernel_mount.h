// Images mounted by the kernel's own squashfs: faster by what a server costs, and only for root. A mistake in
// the kernel's reading of an image is the whole machine's, so that the image must be root's own.
#pragma once

#include "image/layers.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <filesystem>

namespace containerize::runtime {

/// Whether the installation at `prefix` is to be mounted so: it says so (the setting `kernel_mount`), has one
/// image, and root alone can have written it and its manifest.
bool is_for_kernel_mount(const Manifest& manifest, const std::filesystem::path& prefix);

/// Mounts an image by a loop device, which goes with the mount. The caller has CAP_SYS_ADMIN where the
/// machine was started, and not in a user namespace of its own.
Status mount_by_kernel(const image::Layers::ImageFile& image, const std::filesystem::path& mount_point);

} // namespace containerize::runtime
