// Reads Container Device Interface (CDI) specifications, which vendors' tools write for container runtimes.
#pragma once

#include "core/error.h"
#include "gpu/host_tree.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::gpu {

/// The container edits that an unprivileged runtime can apply.
struct CdiEdits {
    std::vector<std::pair<std::string, std::string>> mounts; ///< path on the host, path inside
    std::vector<std::string> nodes;                          ///< below /dev
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::pair<std::string, std::string>>
        links;                ///< from hook create-symlinks: path inside, target
    bool cuda_compat = false; ///< hook enable-cuda-compat: the image's libcuda may be used if newer
};

struct CdiSpecification {
    std::string file;
    std::string kind; ///< "nvidia.com/gpu"
    CdiEdits common;
    std::vector<std::pair<std::string, CdiEdits>> devices; ///< by name: "0", "GPU-<uuid>", "mig0:1", "all"
    std::vector<std::string> refused;                      ///< messages about edits that are never applied
};

/// Parses JSON, or YAML depending on the file's name. The file is not trusted: edits that would cover
/// anything but driver files are refused. Fails if it is not a specification.
Result<CdiSpecification> parse_cdi(std::string_view text, const std::string& file);

/// Returns why a file must not be mounted for a driver; empty if it may. For a symlink, call it for the
/// target, too.
std::string mount_objection(const std::string& path);

/// Returns the specifications of `kind` in /var/run/cdi and /etc/cdi; the first takes precedence, so it comes
/// first. Skips unusable files with a message in `notes`.
std::vector<CdiSpecification> read_cdi(const TreeView& host, std::string_view kind,
                                       std::vector<std::string>& notes);

} // namespace containerize::gpu
