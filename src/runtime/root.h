// The root directory that an installation's programs see where that is not the host's: a base's tree, with
// what of the host belongs there, put together once by a session or a build.
#pragma once

#include "image/tree_view.h"
#include "runtime/bind.h"
#include "runtime/environment.h"
#include "runtime/manifest.h"
#include "runtime/root_key.h"
#include "runtime/served_mount.h"
#include "util/error.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace containerize::runtime {

/// A directory of every such root that is ours: for what a base has no place for.
inline constexpr const char* own_directory = "/.containerize";

/// What a base gets beside its binds, decided by looking at it and at the host: drivers.
struct Injection {
    std::vector<Bind> binds; ///< left out where the source is missing
    /// Links to make, path and target; paths are below `own_directory`.
    std::vector<std::pair<std::string, std::string>> links;
    std::vector<EnvironmentChange> environment;
    std::vector<std::string> notes;    ///< what was left out, and why
    std::vector<std::string> warnings; ///< mistakes of the caller's, which must hear of them
};

/// That of an installation's base, whose tree is `root`.
using FindInjection =
    std::function<Injection(const image::TreeView& root, const Manifest&, const std::string& prefix)>;

struct RootRequest {
    Base base; ///< its file absolute
    /// Directories and files that must be seen whatever the base is, at their own paths: an installation.
    std::vector<std::string> needed;
    std::vector<Bind> binds;       ///< what was asked for, later ones over earlier ones
    std::vector<Bind> offered;     ///< likewise, but nothing may fail for their sake
    std::string user, home, shell; ///< of who runs it, for a base that does not know them
    std::function<Injection(const image::TreeView&)> inject; ///< may be empty
};

struct Root {
    std::optional<ServedMount> base; ///< the server of a base that is an image
    std::vector<EnvironmentChange> environment;
    std::vector<std::string> notes, warnings;
};

/// Makes such a root the root of this mount namespace, which is ours. `work` is an empty directory of ours
/// that can be mounted on. The caller is single-threaded. With the base "host" the root stays, and gets the
/// binds alone.
Result<Root> enter_root(const RootRequest& request, const std::filesystem::path& work);

/// The image of a base that is no directory.
Result<std::vector<image::Layers::ImageFile>> open_base(const Base& base);

/// What a base changes in the environment of its programs.
std::vector<EnvironmentChange> environment_of(const Base& base);

/// Names the root that a manifest asks for: two installations of one name share a session. Empty for the
/// host's own root without binds. Kept in the installation, for launchers (root_key.h).
std::string root_name(const Manifest& manifest);

/// Whose GPUs programs can use: what the caller says (CONTAINERIZE_GPU), else what is recorded.
std::string wanted_gpu(const Manifest& manifest);

/// What callers say about binds.
Result<std::vector<Bind>> binds_of_environment();
/// The same in variables of other tools, for images; what of it only those understand is left out.
std::vector<Bind> binds_of_other_tools();

} // namespace containerize::runtime
