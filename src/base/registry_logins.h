// Names and passwords for registries, as Docker, Podman and Apptainer store them.
#pragma once

#include "core/error.h"
#include "core/variables.h"

#include <optional>
#include <string>

namespace containerize::base {

struct RegistryLogin {
    std::string user, password;
};

/// Looks in $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json, config.json of $DOCKER_CONFIG or
/// ~/.docker, ~/.apptainer/docker-config.json and ~/.singularity/docker-config.json for the first that knows
/// `registry` ("docker.io"), also by a helper program; nullopt if none does. Within a file, the entry for the
/// longest part of `repository` counts. No message contains a secret.
Result<std::optional<RegistryLogin>> find_login(const std::string& registry, const std::string& repository,
                                                const Environment& environment);

} // namespace containerize::base
