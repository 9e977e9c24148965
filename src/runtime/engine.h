// What runs the programs of an installation: the kernel's own means, or the container runtime of the site.
#pragma once

#include "util/error.h"

#include <string>
#include <string_view>

namespace containerize::runtime {

enum class Engine {
    automatic, ///< native where it can, else a container runtime that is there
    native,    ///< user and mount namespaces, and FUSE
    apptainer, ///< what follows is the name of a program
    singularity
};

/// "auto", "native", "apptainer" or "singularity"; others are input errors.
Result<Engine> parse_engine(std::string_view name);
std::string to_text(Engine engine);

/// Whether the engine is a container runtime, not to be tried after others.
bool is_container_runtime(Engine engine);

/// What CONTAINERIZE_ENGINE says: it wins over what an installation asks for. `automatic` where it is not
/// set.
Result<Engine> engine_of_environment();

} // namespace containerize::runtime
