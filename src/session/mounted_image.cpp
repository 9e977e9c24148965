#include "session/mounted_image.h"

#include "core/variables.h"
#include "launch/engine.h"
#include "manifest/launch_settings.h"
#include "mounts/cold_start.h"
#include "mounts/held_image.h"
#include "mounts/kernel_mount.h"
#include "mounts/mount_point.h"
#include "mounts/staged_image.h"
#include "root/root.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace containerize::session {

namespace fs = std::filesystem;

namespace {

Status check_native(const manifest::Manifest& manifest, const std::string& prefix) {
    const auto wanted = launch::parse_engine(manifest.settings.engine);
    if (!wanted || !launch::is_container_runtime(*wanted) || launch::insists_on_native()) return {};
    return fail({.what = "this installation is set to use " + manifest.settings.engine,
                 .where = prefix,
                 .fault = Fault::engine});
}

// A mistake in the environment must not keep programs from starting.
manifest::StagePlace stage_place_for(const manifest::Manifest& manifest) {
    if (const char* asked = value_of(manifest::stage_variable))
        if (const auto place = manifest::parse_stage_place(asked)) return *place;
    return manifest::parse_stage_place(manifest.settings.stage).value_or(manifest::StagePlace::held);
}

} // namespace

Result<std::vector<std::string>> MountedImage::other_mount_points(const manifest::Manifest& manifest,
                                                                  std::span<const MountedImage> others,
                                                                  const mounts::OutsideView& outside) const {
    const auto rules = mounts::rules_of_other_place(plan_.prefix, outside.look());
    std::vector<std::string> paths;
    for (const auto& path : {manifest.prefix, manifest.mask}) {
        if (path.empty() || path == plan_.prefix) continue;
        const auto owner = std::ranges::find_if(others, [&](const MountedImage& other) {
            return std::ranges::find(other.mount_points(), path.string()) != other.mount_points().end();
        });
        if (owner != others.end()) {
            // A copy of this installation shows the same images there, provided that nobody can replace them.
            const auto foreign = find_foreign(path.string(), rules);
            if (foreign) return mounts::no_safe_place(path, *foreign);
            if (owner->digests_ == digests_) continue;
            return fail({.what = "another installation is in use at this installation's original path",
                         .why = path.string() + " is in use by " + owner->plan_.prefix,
                         .where = plan_.prefix,
                         .hint = "Wait until the other one is unmounted (usually ten minutes after its last "
                                 "program ends), or build this installation again where it is now."});
        }
        if (path == manifest.prefix) TRY(manifest::check_first_path(manifest, plan_.prefix));
        TRY(mounts::make_mount_point(path, rules));
        paths.push_back(path);
    }
    return paths;
}

Result<InstallationOnDisk> open_installation(const std::string& prefix, const InstallationOnDisk* earlier) {
    InstallationOnDisk opened;
    opened.prefix = prefix;
    opened.directory.reset(open(prefix.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened.directory) return fail_errno("cannot open the installation", prefix);
    opened.identity = launch::manifest_identity(opened.directory.get());
    if (earlier != nullptr && !opened.identity.empty() && earlier->identity == opened.identity) {
        opened.manifest = earlier->manifest;
        return opened;
    }
    opened.manifest = TRY(manifest::read_manifest(prefix));
    return opened;
}

Result<MountedImage> MountedImage::mount(InstallationOnDisk installation,
                                         std::span<const MountedImage> others,
                                         const std::vector<launch::EnvironmentChange>& root,
                                         const mounts::OutsideView& outside) {
    const auto& prefix = installation.prefix;
    const auto& manifest = installation.manifest;
    TRY(check_native(manifest, prefix));
    if (launch::recorded_root(prefix) != root::root_name(manifest))
        return fail({.what = "the installation is being replaced, or it is damaged",
                     .why = "its root filesystem differs from the one in its manifest",
                     .where = prefix + "/" + launch::root_file,
                     .hint = "Try again. If that does not help, build the installation again with "
                             "`containerize new --force`."});
    MountedImage mounted;
    mounted.below_ = std::move(installation.directory);
    mounted.plan_ = manifest::plan_of(manifest, prefix, std::move(installation.identity));
    mounted.plan_.root = root;

    auto images = TRY(manifest::open_images(manifest, prefix));
    for (const auto& image : manifest.images())
        mounted.digests_.push_back(image.sha256);
    auto further = TRY(mounted.other_mount_points(manifest, others, outside));
    auto staged = TRY(mounted.stage(manifest, images));
    TRY(mounted.show(manifest, std::move(images), staged));
    for (const auto& other : further)
        if (auto shown = mounted.served_->show_at(other); !shown) {
            mounted.served_->unmount();
            return fail(std::move(shown.error()));
        }
    return mounted;
}

Status MountedImage::show(const manifest::Manifest& manifest, std::vector<image::Layers::ImageFile> images,
                          bool staged) {
    const auto& prefix = plan_.prefix;
    if (mounts::is_for_kernel_mount(manifest, prefix)) {
        auto mounted = mounts::ServedMount::mount_without_server(images.front(), prefix);
        if (mounted) {
            served_.emplace(std::move(*mounted));
            notes_.emplace_back("the kernel mounts the image");
            return {};
        }
        notes_.push_back("the kernel does not mount the image: " + to_string(mounted.error()));
    } else if (manifest.settings.kernel_mount && geteuid() == 0) {
        notes_.emplace_back("the kernel does not mount the image: it has updates, or users other than root "
                            "could have written it");
    }
    // Copies on the node need no prefetching.
    auto cold_start = staged ? mounts::ColdStart() : mounts::cold_start_of(manifest, prefix, images);
    served_ = TRY(mounts::ServedMount::mount(std::move(images), prefix, mounts::ServedMount::Use::tree,
                                             std::move(cold_start)));
    if (served_->overlay_timed_out())
        notes_.emplace_back("the image is read so slowly that it gets no overlay: programs work, but slower");
    return {};
}

Result<bool> MountedImage::stage(const manifest::Manifest& manifest,
                                 std::vector<image::Layers::ImageFile>& images) {
    const auto place = stage_place_for(manifest);
    if (place == manifest::StagePlace::off) return false;
    const auto files = manifest.images();
    bool all = true, holder_answers = true;
    for (std::size_t i = 0; i < images.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        auto held = holder_answers ? mounts::held_image(files[i].sha256, files[i].size) : std::nullopt;
        // A suspended holder must not cost its timeout again for each image.
        holder_answers = std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500);
        if (held) {
            images[i].file = std::move(*held);
            notes_.push_back("using the copy of " + files[i].file + " that is on this node");
            continue;
        }
        if (place == manifest::StagePlace::held) {
            all = false;
            continue;
        }
        auto copy =
            mounts::stage_image(images[i].file, images[i].path, files[i].size, files[i].sha256, place);
        // The copy is only for speed: without it, everything works as well.
        if (!copy) {
            notes_.push_back("cannot copy the image to this node: " + to_string(copy.error()));
            return false;
        }
        images[i].file = std::move(*copy);
        notes_.push_back("copied " + files[i].file + " to this node");
    }
    return all;
}

bool MountedImage::needs_new_root(const manifest::Manifest& manifest) {
    const auto missing = [](const fs::path& path) { return !path.empty() && mounts::needs_new_root(path); };
    return missing(manifest.prefix) || missing(manifest.mask);
}

bool MountedImage::current() const {
    return launch::manifest_identity(below_.get()) == plan_.identity && served_->in_place();
}

} // namespace containerize::session
