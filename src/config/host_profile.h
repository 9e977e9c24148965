// Host profiles: data files that list what images need from a kind of host besides GPU drivers, such as for a
// workload manager or network.
#pragma once

#include "core/error.h"
#include "manifest/bind.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

struct HostProfile {
    std::vector<manifest::Bind> binds;
    std::vector<std::string> libraries; ///< the host's, with dependencies, if present: "libcxi.so.1"
};

/// `name` is that of a file "NAME.yaml" in `directory`, or a path. Fails with an input error, with the line,
/// if the file is not a valid profile.
Result<HostProfile> read_host_profile(const std::string& name, const std::filesystem::path& directory);

} // namespace containerize::config
