// A package as an image: what its archive holds, so that environments are linked without unpacking it again.
#pragma once

#include "conda/package_info.h"
#include "core/error.h"
#include "core/open_file.h"
#include "image/listing.h"
#include "image/reader.h"
#include "image/writer.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace containerize::conda {

/// Puts the files that a package lists into an image, as they are in its archive, and those of "info" that
/// linking needs. Verifies sizes and checksums, and that nothing is missing. `name` is for messages.
Status pack_package(const OpenFile& archive, const std::string& name, image::Writer& writer);

/// What such an image says about its package.
Result<PackageInfo> read_package_info(image::Reader& reader, const std::string& name);

/// The files, links and directories of the package, by path.
using PackageEntries = std::unordered_map<std::string, image::ListedEntry>;
Result<PackageEntries> read_package_entries(image::Reader& reader);

/// Reads a file with `prefix` in place of its placeholder. `take` gets pieces of about 1 MiB. Returns the
/// sha256 of them all.
Result<std::string> read_with_prefix(image::Reader& reader, const image::ListedEntry& file,
                                     const PathEntry& entry, const std::string& prefix,
                                     const std::function<Status(std::string_view)>& take);

/// The error for an image that is not one of a package, although its digest is right.
std::unexpected<Error> unusable(const image::Reader& reader, std::string why);

} // namespace containerize::conda
