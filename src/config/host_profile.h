// What images need of a kind of host that is no GPU's driver: a workload manager, a network. Data files say
// it.
#pragma once

#include "runtime/bind.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

struct HostProfile {
    std::vector<runtime::Bind> binds;
    std::vector<std::string>
        libraries; ///< of the host: "libcxi.so.1"; with what they need, where a node has them
};

/// `name` is that of a file "NAME.yaml" in `directory`, or the path of such a file. An input error, with the
/// line, if it is none.
Result<HostProfile> read_host_profile(const std::string& name, const std::filesystem::path& directory);

} // namespace containerize::config
