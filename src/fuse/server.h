// The FUSE server: answers the kernel's requests for the images of an installation.
//
// It implements the kernel's protocol (linux/fuse.h) itself. libfuse keeps a connection's state in the
// process and cannot take over a connection whose FUSE_INIT it has not seen. Here any process can take over
// at any time, because nothing is remembered between requests: a node id is an inode reference plus 2.
#pragma once

#include "fuse/connection.h"
#include "fuse/server_deaths.h"
#include "fuse/server_statistics.h"
#include "image/layers.h"

namespace containerize::fuse {

/// How files with several hard links are shown: as one file, or as a file for each name (SeparateNames). Node
/// ids of the latter are known only to the server that assigned them, so that no other can take over.
enum class HardLinks { one_file, separate_files };

/// Whether the root also holds, unlisted, two directories to make an overlay from: the tree once more, and an
/// empty one. Overlay layers must not overlap, and must be of one filesystem for files to keep their inode
/// numbers.
enum class MountRoot { tree, tree_and_layers };
inline constexpr const char* layer_name = ".containerize-layer";
inline constexpr const char* empty_layer_name = ".containerize-empty-layer";

struct ServerOptions {
    MountRoot root = MountRoot::tree;
    HardLinks hard_links = HardLinks::one_file;
    Suspects suspects = {};
    ServerStatistics* statistics = nullptr; ///< null if nobody reads them
};

/// Serves each descriptor with one thread until the filesystem is unmounted everywhere and no file of it is
/// open. Returns 0 then, otherwise the errno that ended it. For a process that does nothing else.
/// Every file is shown as this user's and group's.
int serve_fuse(image::Layers& layers, const FuseConnection& connection, const ServerOptions& options = {});

} // namespace containerize::fuse
