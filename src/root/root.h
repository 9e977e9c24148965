// The root that an installation's programs see if it is not the host's: the tree of a base, with what belongs
// there of the host, assembled once by a session or a build.
#pragma once

#include "core/error.h"
#include "gpu/injection.h"
#include "image/tree_view.h"
#include "launch/environment.h"
#include "launch/root_key.h"
#include "manifest/bind.h"
#include "manifest/manifest.h"
#include "mounts/served_mount.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace containerize::root {

/// A directory of our own in every such root, for what the base has no place for.
inline constexpr const char* own_directory = "/.containerize";

struct RootRequest {
    manifest::Base base; ///< its file is absolute
    /// Directories and files that must be visible at their own paths whatever the base is: the installation.
    std::vector<std::string> needed = {};
    std::vector<manifest::Bind> binds = {};       ///< as requested; later ones go over earlier ones
    std::vector<manifest::Bind> offered = {};     ///< the same, but a failure is only noted
    std::string user = {}, home = {}, shell = {}; ///< the caller's, for a base that does not know the user
    std::function<gpu::Injection(const image::TreeView&)> inject = {}; ///< finds its drivers; may be empty
};

struct [[nodiscard]] Root {
    std::optional<mounts::ServedMount> base; ///< the server of a base that is an image
    std::vector<launch::EnvironmentChange> environment;
    std::vector<std::string> notes, warnings;
};

/// Assembles such a root in `work`, an empty directory, and makes it the root of this mount namespace, which
/// is private. The caller is single-threaded. With the base "host" the root stays, and only gets the binds.
/// Undoes its mounts on failure.
Result<Root> enter_root(const RootRequest& request, const std::filesystem::path& work);

/// Opens the image of a base that is not a directory.
Result<std::vector<image::Layers::ImageFile>> open_base(const manifest::Base& base);

/// Opens the base's root filesystem for path lookups. Reads the image file directly, because a FUSE mount of
/// it cannot be accessed from outside its mount namespace.
Result<std::unique_ptr<image::TreeView>> open_tree(const manifest::Base& base);

/// What a base changes in the environment of its programs.
std::vector<launch::EnvironmentChange> environment_of(const manifest::Base& base);

/// Names the root that a manifest asks for; installations with the same name share a session. Empty for the
/// host's own root without binds. Recorded in the installation for launchers (root_key.h).
std::string root_name(const manifest::Manifest& manifest);

/// The vendor whose GPUs programs can use: $CONTAINERIZE_GPU if it is set, else as in the manifest.
std::string wanted_gpu(const manifest::Manifest& manifest);

/// Finds the node's drivers and libraries that a base gets, for the base (its tree is `root`) of the
/// installation at `prefix`. $CONTAINERIZE_GPU is not read: see wanted_gpu().
gpu::Injection find_drivers(const image::TreeView& root, const manifest::Manifest& manifest,
                            const std::string& prefix);

/// The binds in the caller's variables, except those that are for images only. Mistakes are input errors.
Result<std::vector<manifest::Bind>> binds_of_environment();
/// The binds in other tools' variables, which are for images only; what only those tools understand is
/// skipped.
std::vector<manifest::Bind> binds_of_other_tools();

} // namespace containerize::root
