#include "environments/image_cache.h"

#include "conda/cache_directory.h"
#include "core/filesystem.h"
#include "util/log.h"

#include <algorithm>
#include <utility>

namespace containerize::environments {

Result<packages::PackageImages> open_images(const BuildContext& context) {
    const auto cache = TRY(conda::cache_directory(context.inputs.environment, context.options.site.cache));
    const auto fallback = context.staging / "images";
    TRY(make_directory(fallback, "cannot create a staging directory"));
    auto directory = conda::images_in(cache);
    if (const auto made = conda::make_images(cache); !made) {
        log::detail(to_string(made.error()));
        directory = fallback;
    }
    return packages::PackageImages(std::move(directory), fallback);
}

packages::ImageKey image_key(const BuildContext& context, std::string sha256, std::string part) {
    return {.archive = std::move(sha256),
            .part = std::move(part),
            .compression = context.options.compression,
            .block_size = context.options.block_size};
}

image::WriterOptions options_of_images(const BuildContext& context) {
    // One thread unpacks about as fast as four compress.
    return {.jobs = std::min(context.jobs, 4U), .memory = context.memory_of_writer() / context.jobs};
}

} // namespace containerize::environments
