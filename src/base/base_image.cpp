#include "base/base_image.h"

#include "base/oci_layers.h"
#include "base/sif.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "image/layers.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/progress.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace containerize::base {

namespace {

ImageConfig with_path(ImageConfig config) {
    if (std::ranges::none_of(config.environment, [](const auto& one) { return one.starts_with("PATH="); }))
        config.environment.insert(config.environment.begin(), usual_path);
    if (config.platform.architecture.empty()) config.platform.architecture = this_architecture();
    return config;
}

void report_omissions(const LayerMerge::LeftOut& left_out, const std::string& reference) {
    const auto note = [&reference](const std::string& what) {
        log::info("Note: " + reference + ": " + what);
    };
    if (left_out.devices > 0)
        note(counted(left_out.devices, "device or pipe is", "devices and pipes are") +
             " left out, because users cannot create them");
    if (left_out.capabilities > 0)
        note("capabilities of " + counted(left_out.capabilities, "file are", "files are") +
             " left out, because they have no effect without root");
    if (left_out.attributes > 0)
        note(counted(left_out.attributes, "extended attribute is", "extended attributes are") +
             " left out, because only user.* attributes are kept");
}

std::vector<Layer> layers_of(const ImageInfo& info, const std::string& reference, Blobs& blobs) {
    std::vector<Layer> layers; // the uppermost first, as LayerMerge reads them
    const auto count = info.layers.size();
    for (std::size_t i = count; i-- > 0;) {
        const auto& descriptor = info.layers[i];
        const Descriptor* next = i > 0 ? &info.layers[i - 1] : nullptr;
        layers.push_back(
            {.name = fmt::format("{}, layer {} of {} ({})", reference, i + 1, count,
                                 descriptor.digest.empty() ? descriptor.name : descriptor.digest),
             .digest = descriptor.digest,
             .diff_id = info.config.diff_ids.at(i),
             .open = [&blobs, &descriptor, next] { return blobs.open(descriptor, next); }});
    }
    return layers;
}

/// Writes the image and adds it to the store.
Result<StoredImage> make_image(const ImageInfo& info, const std::string& reference, Blobs& blobs,
                               StagingDirectory& staging, const Options& options) {
    const auto file = staging.path() / "image.sqfs";
    std::error_code ignored;
    fs::remove(file, ignored); // left by a killed process
    auto writer = TRY(image::Writer::create(file, options.writer));
    LayerMerge merge(writer, options.limit);
    for (const auto& layer : layers_of(info, reference, blobs))
        TRY(merge.add(layer));
    TRY(merge.finish());
    TRY(writer.finish());
    report_omissions(merge.left_out(), reference);
    return add_image(options.store, {.file = file,
                                     .references = {reference},
                                     .digest = info.digest,
                                     .index_digest = info.index_digest,
                                     .config = with_path(info.config)});
}

std::vector<fs::path> all_stores(const Options& options) {
    auto stores = options.site_stores;
    stores.push_back(options.store);
    return stores;
}

/// The image in a store, if there is one; the store then records that `reference` leads there. If the user
/// may only read that store, such as a colleague's, this is skipped: the next pull just asks the source
/// again.
std::optional<StoredImage> find_made(const ImageInfo& info, const std::string& reference,
                                     const Options& options) {
    auto found = find_image(all_stores(options), info.digest);
    if (found && found->file.parent_path() == options.store)
        if (auto noted = add_reference(options.store, *found, reference); !noted)
            log::detail(to_string(noted.error()));
    return found;
}

Result<BaseImage> pull(const Reference& reference, const Options& options) {
    Stage stage("Pulling " + reference.text);
    RegistrySettings settings{
        .http = options.http,
        .urls = options.registries,
        .environment = options.environment,
        .progress = [&stage](std::uint64_t bytes, double rate) { stage.advance(bytes, 0, rate); }};
    const bool remote = reference.kind == Reference::Kind::registry;
    // Documents are small and stay in memory. Only layers need a directory, named by a digest from the
    // documents.
    std::unique_ptr<Blobs> blobs;
    if (remote)
        blobs = std::make_unique<Registry>(reference, std::move(settings));
    else
        blobs = open_layout(reference);
    auto info = TRY(blobs->info());
    auto made = find_made(info, reference.text, options);
    if (made) {
        stage.finish("already in the store");
        return base_image(*made, reference.text);
    }
    auto staging = TRY(StagingDirectory::enter(options.store, info.digest));
    // Another process may have made it while this one waited.
    made = find_made(info, reference.text, options);
    if (!made) {
        if (remote) static_cast<Registry&>(*blobs).download_to(staging.path());
        auto stored = make_image(info, reference.text, *blobs, staging, options);
        blobs.reset(); // ends its background download before the staging is left
        if (!stored) return fail(std::move(stored.error()));
        made = std::move(*stored);
    }
    staging.clean();
    stage.finish(human_bytes(made->size));
    return base_image(*made, reference.text);
}

Status check_squashfs(const fs::path& file, std::uint64_t offset) {
    const auto opened = TRY(open_regular(file));
    return image::Reader::check(opened.get(), file, offset);
}

/// The environment set by the image's own scripts, which Apptainer writes when it converts an image.
Result<ImageConfig> config_in_image(const fs::path& file, std::uint64_t offset) {
    std::vector<image::Layers::ImageFile> files;
    auto opened = TRY(open_regular(file));
    files.push_back({.file = std::move(opened), .path = file, .offset = offset});
    auto image = TRY(image::Layers::open(std::move(files)));
    ImageConfig config;
    constexpr std::size_t longest_script = 1U << 20U;
    for (const char* script :
         {".singularity.d/env/10-docker2singularity.sh", ".singularity.d/env/10-docker.sh"}) {
        const auto found = image->find(script);
        if (!found) continue;
        std::vector<image::Slice> slices;
        if (!image->read(*found, 0, longest_script, slices)) continue;
        std::string text;
        for (const auto& slice : slices)
            text.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
        config.environment = exported_variables(text);
        return config;
    }
    return config;
}

Result<BaseImage> use_file(const Reference& reference) {
    BaseImage base;
    base.reference = reference.text;
    base.file = reference.path;
    std::optional<ImageConfig> config;
    if (reference.kind == Reference::Kind::sif) {
        auto sif = TRY(read_sif(reference.path));
        TRY(check_architecture(sif.architecture, reference.path.string()));
        base.offset = sif.offset;
        config = std::move(sif.config);
    }
    if (auto good = check_squashfs(base.file, base.offset); !good) {
        good.error().hint = "Give another image.";
        return fail(std::move(good.error()));
    }
    if (!config) config = TRY(config_in_image(base.file, base.offset));
    base.config = with_path(std::move(*config));
    std::error_code ignored;
    base.size = fs::file_size(base.file, ignored);
    auto digest = TRY(sha256_of_file(base.file));
    base.digest = "sha256:" + digest;
    return base;
}

Result<BaseImage> use_directory(const Reference& reference) {
    std::error_code ignored;
    if (!fs::is_directory(reference.path / "usr", ignored) &&
        !fs::is_directory(reference.path / "bin", ignored))
        return fail_input("the directory is not a root filesystem", "it has neither usr nor bin",
                          reference.path.string());
    BaseImage base;
    base.reference = reference.text;
    base.file = reference.path;
    base.is_directory = true;
    base.config = with_path({});
    return base;
}

} // namespace

BaseImage base_image(const StoredImage& stored, const std::string& reference) {
    return {.reference = reference,
            .digest = stored.digest,
            .file = stored.file,
            .size = stored.size,
            .config = stored.config};
}

Result<BaseImage> obtain(std::string_view text, const Options& options) {
    // A name in a store needs no source: "bootstrap:..." has none.
    if (!options.refresh)
        if (const auto stored = find_image(all_stores(options), std::string(text)))
            return base_image(*stored, std::string(text));
    auto reference = TRY(parse_reference(text));
    using Kind = Reference::Kind;
    if (reference.kind == Kind::directory) return use_directory(reference);
    if (reference.kind == Kind::sif || reference.kind == Kind::squashfs) return use_file(reference);
    if (reference.kind == Kind::registry && !options.refresh) {
        auto stored = find_image(all_stores(options), reference.text);
        // A digest identifies the image, whatever reference it was pulled by.
        if (!stored && !reference.digest.empty()) stored = find_image(all_stores(options), reference.digest);
        if (stored) return base_image(*stored, reference.text);
    }
    if (reference.kind == Kind::registry && options.offline)
        return fail({.what = "the store of base images does not have this image",
                     .why = "--offline forbids using the network",
                     .where = reference.text,
                     .hint = "Run `containerize base pull " + reference.text +
                             "` first, with the same store, on a machine that can reach the registry."});
    return pull(reference, options);
}

} // namespace containerize::base
