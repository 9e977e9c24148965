// Makes a finished installation appear at its prefix atomically.
#pragma once

#include "core/error.h"
#include "manifest/manifest.h"
#include "prefix/cleanup_process.h"
#include "prefix/prefix.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace containerize::prefix {

/// Fails if the prefix's filesystem has no room for images of this size and the rest of an installation. Call
/// it before anything is copied there.
Status check_room(const PrefixLock& lock, std::uint64_t image_bytes);

/// Removes what killed builds of this prefix left behind when their cleanup process was killed, too.
void remove_leftovers(const PrefixLock& lock);

/// Creates the directory in which the installation is put together, on the prefix's filesystem: inside the
/// prefix if that existed before, otherwise beside it.
Result<std::filesystem::path> make_assembly(const PrefixLock& lock, CleanupProcess& cleanup);

/// Returns an image name that is not used at the prefix yet, so that an image in use is never overwritten.
std::string free_image_name(const std::filesystem::path& prefix);

enum class ImageIs {
    of_this_build, ///< may be moved
    of_others      ///< is copied
};

/// Puts an image into the assembly as `entry.file` and fills in the rest of `entry`. `progress` gets the
/// number of bytes done.
Status add_image(const std::filesystem::path& image, ImageIs image_is, const std::filesystem::path& assembly,
                 manifest::ImageFile& entry, const std::function<void(std::uint64_t)>& progress);

struct Publication {
    const PrefixLock& lock;
    std::filesystem::path assembly;
    const manifest::Manifest& manifest; ///< describes the new current state; `programs_version` is filled in
    std::vector<manifest::Manifest> kept; ///< other states, which remain available
    std::filesystem::path staging;        ///< the build's, no longer needed afterwards
};

/// The last step: turns the assembly into the installation. A prefix that this build created is replaced by
/// one rename. An existing prefix stays the same directory, because running sessions have their image mounted
/// over it and removing a mount point unmounts it. There, renaming the manifest is the atomic switch; files
/// that no state needs are removed afterwards. Of what `cleanup` would remove, only the staging directory and
/// what is left of the assembly go.
Status publish(const Publication& publication, CleanupProcess& cleanup);

} // namespace containerize::prefix
