// The package images that a build uses.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"
#include "packages/package_images.h"

#include <string>

namespace containerize::environments {

/// This user's images. If their directory in the cache cannot be used, new ones are made in the staging
/// directory, for this build only.
Result<packages::PackageImages> open_images(const BuildContext& context);

/// `part` as for packages::ImageKey.
packages::ImageKey image_key(const BuildContext& context, std::string sha256, std::string part = {});

/// For one of several images that are made at once. They depend on nothing but the archive and the key.
image::WriterOptions options_of_images(const BuildContext& context);

} // namespace containerize::environments
