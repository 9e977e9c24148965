// The byte-code of conda packages for any Python, which contain none.
#pragma once

#include "conda/link.h"
#include "core/error.h"
#include "environments/environment_builder.h"
#include "image/writer.h"

#include <vector>

namespace containerize::environments {

/// Links the byte-code of `linked.modules` into `writer`, which has the packages already. What the cache does
/// not have is compiled by the environment's Python, with the image mounted at the prefix. What has its
/// byte-code leaves `linked.to_compile`.
Status link_byte_code(BuildContext& context, const std::vector<conda::PackageToLink>& packages,
                      conda::Linked& linked, image::Writer& writer);

} // namespace containerize::environments
