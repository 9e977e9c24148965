#include "install/writable_images.h"

#include "image/unpack.h"
#include "util/filesystem.h"
#include "util/log.h"

namespace containerize::install {

Result<WritableImages> WritableImages::mount(Workshop& shop, const runtime::Manifest& manifest) {
    std::vector<fs::path> images;
    for (const auto& image : manifest.images())
        images.push_back(shop.prefix / image.file);
    return mount(shop, std::move(images), manifest.mask);
}

Result<WritableImages> WritableImages::mount(Workshop& shop, std::vector<fs::path> images,
                                             const fs::path& mask) {
    WritableImages mounted;
    mounted.staging_ = shop.staging;
    mounted.images_ = std::move(images);
    if (const auto overlay = shop.space.mount_overlay(mounted.images_, shop.staging, shop.prefix); !overlay) {
        // Old kernels, and filesystems without extended attributes: a copy on disk does it, at its price.
        log::info("Note: the environment is copied to disk to be changed there: " +
                  to_string(overlay.error()));
        if (auto copied = mounted.copy(shop); !copied) return fail(std::move(copied.error()));
    }
    if (!mask.empty())
        if (auto bound = shop.space.bind(shop.prefix, mask); !bound) return fail(std::move(bound.error()));
    return mounted;
}

Status WritableImages::copy(Workshop& shop) {
    copied_ = true;
    const auto tree = staging_ / "root";
    std::error_code failed;
    fs::create_directory(tree, failed);
    if (failed) return fail_errno("cannot make a staging directory", tree.string(), failed.value());
    if (auto unpacked = image::unpack(images_, tree); !unpacked) return unpacked;
    auto now = image::time_on(staging_);
    if (!now) return fail(std::move(now.error()));
    copied_at_ = *now;
    return shop.space.bind(tree, shop.prefix);
}

Result<image::Changes> WritableImages::changes(mode_t umask_bits) const {
    return copied_ ? image::changes_since(staging_ / "root", images_, copied_at_, umask_bits)
                   : image::changes_in_overlay(staging_ / "upper", images_, umask_bits);
}

} // namespace containerize::install
