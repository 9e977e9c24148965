#include "drivers.h"

#include "gpu/injection.h"
#include "runtime/root_key.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace containerize {

namespace {

std::unique_ptr<image::Layers> open_environment(const runtime::Manifest& manifest,
                                                const std::string& prefix) {
    auto files = runtime::open_images(manifest, prefix);
    if (!files) return nullptr;
    auto layers = image::Layers::open(std::move(*files));
    return layers ? std::move(*layers) : nullptr;
}

} // namespace

runtime::Injection find_drivers(const image::TreeView& root, const runtime::Manifest& manifest,
                                const std::string& prefix) {
    const auto policy = gpu::parse_policy(manifest.gpu);
    runtime::Injection result;
    if (!policy) result.warnings.push_back(to_string(policy.error()));
    std::map<std::string, std::string> variables;
    for (const auto& variable : runtime::root_variables)
        if (const char* value = std::getenv(variable.name)) variables[variable.name] = value;
    const auto layers = open_environment(manifest, prefix);
    std::optional<image::LayersView> environment;
    if (layers) environment.emplace(*layers);
    auto found = gpu::find({.policy = policy.value_or(gpu::Policy::automatic),
                            .libraries = manifest.host_libraries,
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

} // namespace containerize
