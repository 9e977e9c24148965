#include "environments/writable_images.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/unpack.h"
#include "util/log.h"
#include "util/process.h"

namespace containerize::environments {

Result<WritableImages> WritableImages::mount(Workshop& shop, const manifest::Manifest& manifest) {
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
    if (const auto overlay = shop.space.mount_overlay(mounted.images_, shop.staging, shop.prefix); !overlay)
        if (auto done = mounted.mount_without_overlay(shop, to_string(overlay.error())); !done)
            return fail(std::move(done.error()));
    mounted.merged_ = shop.space.tree();
    if (!mask.empty())
        if (auto bound = shop.space.bind(shop.prefix, mask, shop.prefix); !bound)
            return fail(std::move(bound.error()));
    return mounted;
}

// For old kernels, and filesystems without extended attributes.
Status WritableImages::mount_without_overlay(Workshop& shop, const std::string& why) {
    if (interrupted()) return fail_interrupted();
    const auto path = shop.inputs.environment.find("PATH");
    const auto program =
        find_program("fuse-overlayfs", path == shop.inputs.environment.end() ? "" : path->second);
    const auto suits = program ? image::suits_fuse_overlay(images_) : Result<bool>(false);
    if (!suits) return fail(Error(suits.error()));
    if (*suits) {
        auto mounted = shop.space.mount_fuse_overlay(*program, images_, staging_, shop.prefix);
        if (mounted) {
            means_ = Means::fuse_overlay;
            log::info("Note: fuse-overlayfs is used, because the kernel's overlay cannot be: " + why);
            return {};
        }
        if (interrupted()) return mounted;
        log::info("Note: fuse-overlayfs cannot be used: " + to_string(mounted.error()));
    }
    log::info("Note: the environment is copied to disk to be changed there, which takes longer: " + why);
    return make_copy(shop);
}

Status WritableImages::make_copy(Workshop& shop) {
    means_ = Means::copy;
    std::error_code failed;
    fs::create_directory(copy(), failed);
    if (failed) return fail_errno("cannot make a staging directory", copy().string(), failed.value());
    if (auto unpacked = image::unpack(images_, copy()); !unpacked) return unpacked;
    auto snapshot = image::take_snapshot(copy());
    if (!snapshot) return fail(std::move(snapshot.error()));
    as_copied_ = std::move(*snapshot);
    return shop.space.bind(copy(), shop.prefix, shop.prefix);
}

Result<image::Changes> WritableImages::changes(mode_t umask_bits) const {
    switch (means_) {
    case Means::copy:
        return image::changes_since(as_copied_, copy(), images_, umask_bits);
    case Means::fuse_overlay:
        return image::changes_in_fuse_overlay(staging_ / "upper", merged_, images_, umask_bits);
    default:
        return image::changes_in_overlay(staging_ / "upper", images_, umask_bits);
    }
}

fs::path WritableImages::copy() const {
    return means_ == Means::copy ? staging_ / "root" : fs::path();
}

} // namespace containerize::environments
