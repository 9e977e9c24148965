// The FUSE server: answers the kernel's requests for the images of an installation.
//
// It speaks the kernel's protocol (linux/fuse.h) itself. libfuse keeps the state of a connection in the
// process and refuses one whose first message it has not seen; here any process can take over a connection at
// any time, because nothing is remembered between requests: a node's id is its inode's reference plus 2.
#pragma once

#include "image/layers.h"
#include "runtime/fuse_connection.h"
#include "runtime/server_deaths.h"
#include "runtime/server_statistics.h"

#include <sys/types.h>

namespace containerize::runtime {

struct FuseOwner {
    uid_t uid; ///< every file is shown as owned by this user and group
    gid_t gid;
};

/// How files that have several names are shown: as what they are, or as a file for each name (SeparateNames).
/// Nodes of the second mean nothing to another server.
enum class HardLinks { one_file, separate_files };

/// Whether the mount's root has, unlisted, what an overlay can be made from: the tree once more, and an empty
/// directory. An overlay's layers must be beside each other, and of one filesystem, for files to keep their
/// inode numbers.
enum class MountRoot { tree, tree_and_layers };
inline constexpr const char* layer_name = ".containerize-layer";
inline constexpr const char* empty_layer_name = ".containerize-empty-layer";

/// How many threads a server has on this machine, for this process's share of it.
unsigned server_threads();

/// Serves with one thread a descriptor until the filesystem is unmounted everywhere and no file of it is
/// open. Returns 0 then, else the errno that ended it. For a process that does nothing else.
int serve_fuse(image::Layers& layers, const FuseConnection& connection, FuseOwner owner,
               ServerStatistics& statistics, MountRoot root = MountRoot::tree,
               HardLinks hard_links = HardLinks::one_file, const Suspects& suspects = {});

} // namespace containerize::runtime
