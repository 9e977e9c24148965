// Specifications of the Container Device Interface: what a vendor's tool wrote down for container runtimes.
#pragma once

#include "gpu/tree.h"
#include "util/error.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::gpu {

/// What a container needs, as far as it concerns an unprivileged runtime.
struct CdiEdits {
    std::vector<std::pair<std::string, std::string>> mounts; ///< path on the host, path inside
    std::vector<std::string> nodes;                          ///< below /dev
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::pair<std::string, std::string>>
        links;                ///< of the hook create-symlinks: path inside, target
    bool cuda_compat = false; ///< the hook enable-cuda-compat: a newer libcuda of the image may be used
};

struct CdiSpecification {
    std::string file;
    std::string kind; ///< "nvidia.com/gpu"
    CdiEdits common;
    std::vector<std::pair<std::string, CdiEdits>> devices; ///< by name: "0", "GPU-<uuid>", "mig0:1", "all"
    std::vector<std::string> refused; ///< messages: what was asked for that is never done
};

/// JSON, or YAML by the file's name. Not trusted: what would cover other than driver files is refused, a file
/// that is no specification is an error.
Result<CdiSpecification> parse_cdi(std::string_view text, const std::string& file);

/// Why a file must not be mounted for a driver; empty if it may. Of a link on the host, also to be asked of
/// what it leads to.
std::string mount_objection(const std::string& path);

/// Those for devices of `kind`, from /etc/cdi and then /var/run/cdi, whose entries go before. Files that
/// cannot be used are left out with a message in `notes`.
std::vector<CdiSpecification> read_cdi(const TreeView& host, std::string_view kind,
                                       std::vector<std::string>& notes);

} // namespace containerize::gpu
