// libexec/containerize-session of an installation: started by a launcher, never by hand.
#include "runtime/session.h"

#include "gpu/injection.h"
#include "runtime/root_key.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace containerize;

std::unique_ptr<image::Layers> open_environment(const runtime::Manifest& manifest,
                                                const std::string& prefix) {
    auto files = runtime::open_images(manifest, prefix);
    if (!files) return nullptr;
    auto layers = image::Layers::open(std::move(*files));
    return layers ? std::move(*layers) : nullptr;
}

/// What this node has, for the base of an installation.
runtime::Injection find_drivers(const image::TreeView& root, const runtime::Manifest& manifest,
                                const std::string& prefix) {
    const char* asked = std::getenv("CONTAINERIZE_GPU");
    const auto policy = gpu::parse_policy(asked != nullptr && *asked != '\0' ? asked : manifest.gpu);
    runtime::Injection result;
    if (!policy) {
        result.notes.push_back(to_string(policy.error()));
        return result;
    }
    std::map<std::string, std::string> variables;
    for (const auto& variable : runtime::root_variables)
        if (const char* value = std::getenv(variable.name)) variables[variable.name] = value;
    const auto layers = open_environment(manifest, prefix);
    std::optional<image::LayersView> environment;
    if (layers) environment.emplace(*layers);
    auto found = gpu::find({.policy = *policy,
                            .graphics = false,
                            .has_devices = !manifest.base.isolate,
                            .host_root = "/",
                            .variables = std::move(variables),
                            .image = root,
                            .environment = environment ? &*environment : nullptr,
                            .prefix = prefix});
    result.binds = std::move(found.binds);
    for (auto& link : found.links)
        result.links.emplace_back(std::move(link.path), std::move(link.target));
    result.environment = std::move(found.environment);
    result.notes = std::move(found.notes);
    return result;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("containerize-session is started by the programs of an installation, when they need it.\n",
                   stderr);
        return 2;
    }
    // The launcher becomes the user's program: that must not find itself with a child that it never started.
    const pid_t pid = fork();
    if (pid != 0) return pid > 0 ? 0 : 1;
    // Standard output is the launcher's pipe.
    containerize::Fd report(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return containerize::runtime::run_session(
        {.state_path = argv[1], .key = argv[2], .prefix = argv[3], .inject = find_drivers},
        std::move(report));
}
