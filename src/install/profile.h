// Recording what programs of an installation read first, for the sessions that come.
#pragma once

#include "image/profile.h"
#include "runtime/manifest.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct BuildOptions;

struct ProfileRequest {
    /// Each a program with its arguments. Empty: the interpreter's start, and the imports of the packages
    /// that it finds, in bounded time.
    std::vector<std::vector<std::string>> commands;
    bool at_terminal = false;             ///< they have the user's terminal, else nothing
    bool replace = false;                 ///< what was recorded before is forgotten
    std::filesystem::path share;          ///< where our templates are
    std::filesystem::path staging_parent; ///< empty: a node-local directory
};

/// What all profiles of an installation cover.
struct ProfileCoverage {
    std::size_t blocks = 0;
    std::uint64_t bytes = 0;
    std::size_t requests = 0; ///< by which they are read, as nothing else is set
};

struct Recording {
    ProfileCoverage coverage;
    int exit_code = 0; ///< of the last command that failed, else 0
};

/// Runs the commands, in a session of their own, and writes the profiles beside the images, merged with what
/// was there: what is new comes first.
Result<Recording> record_profile(const std::filesystem::path& prefix, const ProfileRequest& request);

/// Of the profiles that fit the images.
Result<ProfileCoverage> profile_coverage(const std::filesystem::path& prefix);

/// The profile that an image has, if it fits; without blocks if it has none.
image::Profile profile_beside(const std::filesystem::path& prefix, const runtime::ImageFile& image);

/// At the end of a build, as its options ask for it. What fails is no failure of the build: it is warned of
/// if it was asked for, and noted in the log if not. `replace` as in ProfileRequest.
void record_after_build(const BuildOptions& options, bool replace);

} // namespace containerize::install
