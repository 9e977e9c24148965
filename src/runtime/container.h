// Programs of an installation, run by the site's container runtime: Apptainer, or Singularity, which it was
// once called and which takes the same options.
#pragma once

#include "runtime/engine.h"
#include "runtime/root.h"
#include "util/error.h"

#include <string>
#include <vector>

namespace containerize::runtime {

struct ContainerCall {
    std::string prefix;
    std::string program; ///< the wrapper's own path: PREFIX/bin/NAME
    std::string target;  ///< the path to execute inside
    bool through_prefix = true;
    std::string native_failure; ///< why the native engine is not used; empty where it was not to be tried
    std::vector<std::string> arguments;
    FindInjection inject; ///< what a base gets, beside the drivers that the runtime brings itself
};

/// Becomes the container runtime, which becomes the program. Returns only what was in the way.
///
/// The image is mounted over the prefix by the runtime, where it is one; where updates added layers, by our
/// own server (serve_container), because no runtime merges images. Programs see the host's root, or the base.
Error run_in_container(const ContainerCall& call);

/// What the container runtime starts as a FUSE server: `device` is "/dev/fd/N", a mount that it has made.
/// Returns the process's exit code when that is unmounted, or what failed before.
Result<int> serve_container(const std::string& prefix, const std::string& device);

} // namespace containerize::runtime
