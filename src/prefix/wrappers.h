// Makes the directories of an installation that users put on PATH: a launcher for each command of the
// environment.
#pragma once

#include "core/error.h"
#include "image/tree_view.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::prefix {

/// The wrapper that all others are links to, relative to the prefix.
inline constexpr const char* launcher_file = "bin/_debug_exec";

/// Returns "bin" followed by the --wrapper-paths, relative to the prefix and without duplicates. Fails with
/// an input error if a path does not lie below the prefix.
Result<std::vector<std::string>> check_wrapper_paths(const std::vector<std::string>& given,
                                                     const std::filesystem::path& prefix);

struct WrapperRequest {
    std::filesystem::path root;          ///< the tree of the environment
    const image::TreeView& surroundings; ///< the root filesystem in which it was built
    std::filesystem::path prefix;        ///< its path inside
    std::filesystem::path mask;          ///< its second path inside; empty for none
    std::vector<std::string> paths;      ///< from check_wrapper_paths
    std::filesystem::path libexec;       ///< holds the launcher and session programs
    std::filesystem::path output;        ///< the assembly
    std::filesystem::path existing; ///< an installation whose identical programs are reused; may be empty
    mode_t umask_bits = 022;
};

/// Returns the directories among `paths`. For a single program, adds a link to it in "bin" unless that has
/// one of this name. Fails with an input error if a path does not exist, unless it is in `optional`. Call it
/// before packing.
Result<std::vector<std::string>> existing_wrapper_paths(const WrapperRequest& request,
                                                        const std::vector<std::string>& optional);

/// Makes the wrappers in `output`: one copy of the launcher and hard links to it (symlinks where hard links
/// are not possible). Copies files that are not programs (bin/activate). Adds links in "bin" to commands of
/// other directories, so that only "bin" need be on PATH. Returns the number of commands.
Result<std::size_t> make_wrappers(const WrapperRequest& request);

/// Adds the session program, also as bin/containerize-rank, and pyvenv.cfg, by which editors recognise a
/// venv.
Status add_session(const WrapperRequest& request);

} // namespace containerize::prefix
