// Fetches and packs the packages of a plan, each only once, and links them into an image.
#pragma once

#include "conda/link.h"
#include "core/error.h"
#include "environments/conda_plan.h"
#include "environments/environment_builder.h"
#include "image/writer.h"

#include <string>
#include <vector>

namespace containerize::environments {

/// Archives are fetched only for packages that have no image in the cache yet, and for those whose record has
/// no sha256.
Result<std::vector<conda::PackageToLink>> fetch_packages(const BuildContext& context, const CondaPlan& plan);

Result<std::vector<conda::PackageInfo>> read_packages(const BuildContext& context,
                                                      const std::vector<conda::PackageToLink>& packages);

/// `options` need only say what is not the same for each build.
Result<conda::Linked> link_packages(const BuildContext& context,
                                    const std::vector<conda::PackageToLink>& packages,
                                    std::vector<conda::PackageInfo> infos, conda::LinkOptions options,
                                    image::Writer& writer, Stage& stage);

/// "12 packages, 3,456 files, 217.3 MB".
std::string summary_of(const conda::Linked& linked);

} // namespace containerize::environments
