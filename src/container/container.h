// Runs programs of an installation by the site's container runtime: Apptainer, or Singularity, which takes
// the same options.
#pragma once

#include "core/error.h"
#include "launch/engine.h"

#include <string>
#include <vector>

namespace containerize::container {

struct ContainerCall {
    std::string prefix;
    std::string program; ///< the wrapper's own path: PREFIX/bin/NAME
    std::string target;  ///< the path to execute inside
    bool through_prefix = true;
    std::string native_failure; ///< why the native engine failed; empty if it was not tried
    std::vector<std::string> arguments = {};
};

/// Executes the container runtime, which executes the program. Returns only on failure.
///
/// The runtime mounts a single image over the prefix by itself. With layers of updates it starts our FUSE
/// server instead (serve_container), because no runtime merges images. Programs see the host's root, or the
/// base.
Status run_in_container(const ContainerCall& call);

/// The FUSE server that the container runtime starts. `device` is "/dev/fd/N", the descriptor of a mount that
/// the runtime has made. Returns the exit code when that is unmounted, or why it could not be served.
Result<int> serve_container(const std::string& prefix, const std::string& device);

} // namespace containerize::container
