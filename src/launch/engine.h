// What runs the programs of an installation: the kernel's own means, or the site's container runtime.
#pragma once

#include "core/error.h"

#include <string>
#include <string_view>

namespace containerize::launch {

enum class Engine {
    automatic, ///< native if possible, else an installed container runtime
    native,    ///< user and mount namespaces, and FUSE
    apptainer, ///< this and the following are also names of executables
    singularity
};

/// Parses "auto", "native", "apptainer" or "singularity"; anything else is an input error.
Result<Engine> parse_engine(std::string_view name);
std::string to_text(Engine engine);

/// Whether the engine is a container runtime. `automatic` is not one.
bool is_container_runtime(Engine engine);

/// The engine in CONTAINERIZE_ENGINE, which overrides the installation's; `automatic` if it is unset. An
/// unknown name is an input error.
Result<Engine> engine_of_environment();
/// Whether that variable insists on the native engine.
bool insists_on_native();

} // namespace containerize::launch
