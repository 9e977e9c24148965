// Records what programs of an installation read first, so that sessions can read it ahead.
#pragma once

#include "core/error.h"
#include "image/access_profile.h"
#include "inputs/build_options.h"
#include "manifest/manifest.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::build {

struct ProfileRequest {
    /// Programs with their arguments. If empty, starts the interpreter and imports the packages that it
    /// finds, within a time limit.
    std::vector<std::vector<std::string>> commands = {};
    bool at_terminal = false;                  ///< the commands use the user's terminal, otherwise none
    bool replace = false;                      ///< discard what was recorded before
    std::filesystem::path share;               ///< holds the templates
    std::filesystem::path staging_parent = {}; ///< empty: choose a node-local directory
};

/// Totals over all profiles of an installation.
struct ProfileCoverage {
    std::size_t blocks = 0;
    std::uint64_t bytes = 0;
    std::size_t requests = 0; ///< number of read requests with the default settings
};

struct Recording {
    ProfileCoverage coverage;
    int exit_code = 0; ///< of the last command that failed, otherwise 0
};

/// Runs the commands in sessions of their own and writes the profiles beside the images. New blocks come
/// first, then those of the earlier profiles. Does not check who may change the installation:
/// prefix::check_maintainer() does.
Result<Recording> record_profile(const std::filesystem::path& prefix, const ProfileRequest& request);

/// Counts only profiles that match their images.
Result<ProfileCoverage> profile_coverage(const std::filesystem::path& prefix);

/// Returns the profile of an image; without blocks if there is none or it does not match the image.
image::Profile profile_beside(const std::filesystem::path& prefix, const manifest::ImageFile& image);

/// Records at the end of a build, as its options say; the imports of all packages in the background, unless
/// the layout depends on what is recorded. Never fails: warns about problems if commands to record were
/// given, otherwise at most tells the reason. `replace` as in ProfileRequest.
void record_after_build(const inputs::BuildOptions& options, bool replace);

} // namespace containerize::build
