#include "environments/writable_images.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/unpack.h"
#include "util/log.h"
#include "util/process.h"

namespace containerize::environments {

Result<WritableImages> WritableImages::mount(BuildContext& context, const manifest::Manifest& manifest) {
    std::vector<fs::path> images;
    for (const auto& image : manifest.images())
        images.push_back(context.prefix / image.file);
    return mount(context, std::move(images), manifest.mask);
}

Result<WritableImages> WritableImages::mount(BuildContext& context, std::vector<fs::path> images,
                                             const fs::path& mask) {
    WritableImages mounted;
    mounted.staging_ = context.staging;
    mounted.images_ = std::move(images);
    if (const auto overlay = context.space.mount_overlay(mounted.images_, context.staging, context.prefix);
        !overlay)
        TRY(mounted.mount_without_overlay(context, to_string(overlay.error())));
    mounted.merged_ = context.space.tree();
    if (!mask.empty()) TRY(context.space.bind(context.prefix, mask, context.prefix));
    return mounted;
}

Status WritableImages::bind_upper(BuildContext& context) {
    const auto upper = context.staging / upper_name;
    TRY(make_directory(upper, "cannot create a staging directory"));
    return context.space.bind(upper, context.prefix, context.prefix);
}

// For old kernels, and filesystems without extended attributes.
Status WritableImages::mount_without_overlay(BuildContext& context, const std::string& why) {
    if (interrupted()) return fail_interrupted();
    const auto program = find_program("fuse-overlayfs", search_path(context.inputs.environment));
    const auto suits = TRY(program ? image::suits_fuse_overlay(images_) : Result<bool>(false));
    if (suits) {
        auto mounted = context.space.mount_fuse_overlay(*program, images_, staging_, context.prefix);
        if (mounted) {
            means_ = Means::fuse_overlay;
            fuse_overlay_program_ = *program;
            log::info("Note: using fuse-overlayfs, because the kernel's overlayfs cannot be used: " + why);
            return {};
        }
        if (interrupted()) return mounted;
        log::info("Note: fuse-overlayfs cannot be used: " + to_string(mounted.error()));
    }
    log::info("Note: copying the environment to disk to change it there, which takes longer: " + why);
    return make_copy(context);
}

/// Like an overlay, puts what the pre-install script wrote in place of what packages have at the same paths.
Status WritableImages::copy_upper() const try {
    const auto upper = staging_ / upper_name;
    for (const auto& entry : fs::recursive_directory_iterator(upper)) {
        const auto target = copy() / entry.path().lexically_relative(upper);
        const bool both_directories =
            fs::is_directory(entry.symlink_status()) && fs::is_directory(fs::symlink_status(target));
        if (!both_directories) fs::remove_all(target);
    }
    fs::copy(upper, copy(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    return {};
} catch (const fs::filesystem_error& failure) {
    return fail_errno("cannot copy what the pre-install script wrote", failure.path1().string(),
                      failure.code().value());
}

/// Removes an earlier state, whose files the images may not have any more. The directory itself is mounted.
Status WritableImages::empty_copy() const try {
    for (const auto& entry : fs::directory_iterator(copy()))
        fs::remove_all(entry.path());
    return {};
} catch (const fs::filesystem_error& failure) {
    return fail_errno("cannot remove an earlier copy", failure.path1().string(), failure.code().value());
}

Status WritableImages::make_copy(BuildContext& context) {
    means_ = Means::copy;
    TRY(make_directory(copy(), "cannot create a staging directory"));
    TRY(empty_copy());
    TRY(image::unpack(images_, copy()));
    as_copied_ = TRY(image::take_snapshot(copy()));
    if (context.options.pre_install) TRY(copy_upper());
    return context.space.bind(copy(), context.prefix, context.prefix);
}

Status WritableImages::mount_again(BuildContext& context) {
    switch (means_) {
    case Means::copy:
        return make_copy(context);
    case Means::fuse_overlay:
        return context.space.mount_fuse_overlay(fuse_overlay_program_, images_, staging_, context.prefix);
    default:
        return context.space.mount_overlay(images_, staging_, context.prefix);
    }
}

Status WritableImages::unmount(BuildContext& context) const {
    TRY(context.space.unmount(staging_ / "lower"));
    return context.space.unmount(context.prefix);
}

Status WritableImages::remount(BuildContext& context, const std::function<Status()>& change) {
    if (means_ != Means::copy) TRY(unmount(context));
    TRY(change());
    TRY(mount_again(context));
    merged_ = context.space.tree();
    return {};
}

Result<std::optional<std::set<std::string>>> WritableImages::taken(mode_t umask_bits) const {
    if (means_ == Means::copy) return std::nullopt;
    const auto changed = TRY(changes(umask_bits));
    // What fuse-overlayfs hides depends on its version.
    if (means_ == Means::fuse_overlay && !changed.files.empty()) return std::nullopt;
    return std::set<std::string>(changed.files.begin(), changed.files.end());
}

Result<image::Changes> WritableImages::changes(mode_t umask_bits) const {
    switch (means_) {
    case Means::copy:
        return image::changes_since(as_copied_, copy(), images_, umask_bits);
    case Means::fuse_overlay:
        return image::changes_in_fuse_overlay(staging_ / upper_name, merged_, images_, umask_bits);
    default:
        return image::changes_in_overlay(staging_ / upper_name, images_, umask_bits);
    }
}

Result<image::WriteStats> WritableImages::pack(std::optional<image::Writer>& writer, const fs::path& image,
                                               const image::WriterOptions& options, mode_t umask_bits,
                                               const image::PackProgress& progress) const {
    if (!copy().empty()) {
        writer.reset(); // also closes the unfinished image, which changes were compared with
        return image::write_tree(copy(), image, options, umask_bits, progress);
    }
    auto changed = TRY(changes(umask_bits));
    TRY(image::add_entries(*writer, changed.tree, image::Whiteouts::apply, progress));
    auto stats = writer->finish();
    if (stats) stats->left_out = std::move(changed.tree.left_out);
    return stats;
}

fs::path WritableImages::written() const {
    return means_ == Means::copy ? copy() : staging_ / upper_name;
}

fs::path WritableImages::copy() const {
    return means_ == Means::copy ? staging_ / "root" : fs::path();
}

} // namespace containerize::environments
