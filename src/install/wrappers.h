// The directories of an installation that users put on PATH: one launcher for each command of the
// environment.
#pragma once

#include "image/tree_view.h"
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

struct WrapperRequest {
    std::filesystem::path root;          ///< the environment as it was built
    const image::TreeView& surroundings; ///< the root in which it was built
    std::filesystem::path prefix;        ///< where it stands inside
    std::filesystem::path mask;          ///< where it stands, too; empty for nowhere else
    std::vector<std::string> paths;      ///< from check_wrapper_paths
    std::filesystem::path libexec; ///< where the launcher, which all of them are, and the session program are
    std::filesystem::path output;  ///< the installation that is being put together
    std::filesystem::path existing; ///< an installation whose programs serve again if they are the same
    mode_t umask_bits = 022;
};

/// Of `paths` the directories. A single program among them gets its wrapper by a link in "bin", where the
/// environment's own of that name comes first; what is neither is an input error, unless it is one of
/// `optional`. Before anything is packed.
Result<std::vector<std::string>> settled_wrapper_paths(const WrapperRequest& request,
                                                       const std::vector<std::string>& optional);

/// Makes them in `output`: one copy of the launcher and hard links to it (links where hard links are
/// impossible). Files that are no programs (bin/activate) are copied. Commands of other directories can be
/// called by way of "bin", too, so that it alone need be on PATH. Returns how many commands there are.
Result<std::size_t> make_wrappers(const WrapperRequest& request);

/// What an installation has beside its wrappers: the session program, which is bin/containerize-rank, too,
/// and the mark by which editors know a venv.
Status add_session(const WrapperRequest& request);

} // namespace containerize::install
