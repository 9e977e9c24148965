// Names and passwords for registries, as Docker, Podman and Apptainer keep them.
#pragma once

#include "util/error.h"
#include "util/process.h"

#include <optional>
#include <string>

namespace containerize::base {

struct RegistryLogin {
    std::string user, password;
};

/// Of $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json, config.json of $DOCKER_CONFIG or ~/.docker,
/// ~/.apptainer/docker-config.json and ~/.singularity/docker-config.json, the first that knows `registry`
/// ("docker.io"), asking the helper program that it names; none if nobody does. The longest part of
/// `repository` that a file has an entry for counts. No message holds a secret.
Result<std::optional<RegistryLogin>> find_login(const std::string& registry, const std::string& repository,
                                                const Environment& environment);

} // namespace containerize::base
