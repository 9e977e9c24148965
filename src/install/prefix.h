// Where an installation may be made, and the claim of one build on that place.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

/// The prefix as an absolute path without links, if an installation may be made there: it is absent, empty,
/// or (with `force`) an installation already.
Result<std::filesystem::path> check_prefix(const std::string& given, bool force);

/// One build's right to a prefix: the directory exists, and no other build may touch it while this object
/// lives.
struct Claim {
    std::filesystem::path prefix;
    bool existed = false; ///< it was there before, empty or an installation
    std::vector<std::filesystem::path>
        made_parents; ///< directories above it that had to be made, parents first
    Fd lock;
};
Result<Claim> claim_prefix(const std::filesystem::path& prefix);

} // namespace containerize::install
