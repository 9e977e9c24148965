// Making a finished installation appear at its prefix, all at once.
#pragma once

#include "install/janitor.h"
#include "install/prefix.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace containerize::install {

/// Sees that there is room for `bytes` on the prefix's filesystem, before anything is copied there.
Status check_room(const Claim& claim, std::uint64_t bytes);

/// Removes what builds of this prefix left that were killed with everything around them, the janitor
/// included.
void remove_leftovers(const Claim& claim);

/// A directory on the prefix's filesystem in which the installation is put together: beside the prefix where
/// that did not exist, inside it where it did.
Result<std::filesystem::path> make_assembly(const Claim& claim, Janitor& janitor);

/// A name for the image of a new installation that nothing at the prefix has: an image in use is never
/// overwritten.
std::string free_image_name(const std::filesystem::path& prefix);

enum class ImageIs {
    of_this_build, ///< moved
    of_others      ///< copied
};

/// Puts an image into the assembly under the name that `entry.file` has, and fills in the rest of `entry`.
/// `progress` gets bytes.
Status add_image(const std::filesystem::path& image, ImageIs image_is, const std::filesystem::path& assembly,
                 runtime::ImageFile& entry, const std::function<void(std::uint64_t)>& progress);

struct Publication {
    const Claim& claim;
    std::filesystem::path assembly;
    const runtime::Manifest& manifest;   ///< of the state that becomes the current one
    std::vector<runtime::Manifest> kept; ///< other states that can be gone back to
};

/// The last step: the assembly becomes the installation. A prefix that was made for this build is replaced by
/// one rename. One that existed stays the same directory, because sessions that run have their image mounted
/// over it and a removed mount point takes the mount away; there, the rename of the manifest is the moment at
/// which old becomes new, and what no state needs any more is removed afterwards.
Status publish(const Publication& publication, Janitor& janitor);

} // namespace containerize::install
