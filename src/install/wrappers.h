// The directories of an installation that users put on PATH: one launcher for each command of the
// environment.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::install {

/// "bin" and the --wrapper-paths, relative to the prefix, each once. A path that does not lie below the
/// prefix is refused.
Result<std::vector<std::string>> check_wrapper_paths(const std::vector<std::string>& given,
                                                     const std::filesystem::path& prefix);

/// An executable copy, for all whom the umask lets.
Status copy_program(const std::filesystem::path& from, const std::filesystem::path& to, mode_t umask_bits);

struct WrapperRequest {
    std::filesystem::path root;     ///< the environment as it was built
    std::filesystem::path prefix;   ///< where it stands inside
    std::vector<std::string> paths; ///< from check_wrapper_paths
    std::filesystem::path launcher; ///< the program that all of them are
    std::filesystem::path output;   ///< the installation that is being put together
    mode_t umask_bits = 022;
};

/// Makes them in `output`: one copy of the launcher and hard links to it (links where hard links are
/// impossible). Files that are no programs (bin/activate) are copied. Returns how many commands there are.
/// A path that is no directory of the environment is an input error.
Result<std::size_t> make_wrappers(const WrapperRequest& request);

} // namespace containerize::install
