// The root that an installation's programs see if it is not the host's: the tree of a base, with what belongs
// there of the host, assembled once by a session or a build.
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

/// A directory of our own in every such root, for what the base has no place for.
inline constexpr const char* own_directory = "/.containerize";

/// What a base gets besides binds, decided by examining it and the host: drivers.
struct Injection {
    std::vector<Bind> binds; ///< skipped if the source is missing
    /// Links to make, as path and target; paths are below `own_directory`.
    std::vector<std::pair<std::string, std::string>> links;
    std::vector<EnvironmentChange> environment;
    std::vector<std::string> notes;    ///< what was left out, and why
    std::vector<std::string> warnings; ///< mistakes of the caller, who must see them
};

/// Finds the injection for an installation whose base has the tree `root`.
using FindInjection =
    std::function<Injection(const image::TreeView& root, const Manifest&, const std::string& prefix)>;

struct RootRequest {
    Base base; ///< its file is absolute
    /// Directories and files that must be visible at their own paths whatever the base is: the installation.
    std::vector<std::string> needed;
    std::vector<Bind> binds;       ///< as requested; later ones go over earlier ones
    std::vector<Bind> offered;     ///< the same, but a failure is only noted
    std::string user, home, shell; ///< the caller's, for a base that does not know the user
    std::function<Injection(const image::TreeView&)> inject; ///< may be empty
};

struct Root {
    std::optional<ServedMount> base; ///< the server of a base that is an image
    std::vector<EnvironmentChange> environment;
    std::vector<std::string> notes, warnings;
};

/// Assembles such a root in `work`, an empty directory, and makes it the root of this mount namespace, which
/// is private. The caller is single-threaded. With the base "host" the root stays, and only gets the binds.
/// Undoes its mounts on failure.
Result<Root> enter_root(const RootRequest& request, const std::filesystem::path& work);

/// Opens the image of a base that is not a directory.
Result<std::vector<image::Layers::ImageFile>> open_base(const Base& base);

/// What a base changes in the environment of its programs.
std::vector<EnvironmentChange> environment_of(const Base& base);

/// Names the root that a manifest asks for; installations with the same name share a session. Empty for the
/// host's own root without binds. Recorded in the installation for launchers (root_key.h).
std::string root_name(const Manifest& manifest);

/// The vendor whose GPUs programs can use: $CONTAINERIZE_GPU if it is set, else as in the manifest.
std::string wanted_gpu(const Manifest& manifest);

/// The binds in the caller's variables, except those that are for images only. Mistakes are input errors.
Result<std::vector<Bind>> binds_of_environment();
/// The binds in other tools' variables, which are for images only; what only those tools understand is
/// skipped.
std::vector<Bind> binds_of_other_tools();

} // namespace containerize::runtime
