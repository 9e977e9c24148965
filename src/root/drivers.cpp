#include "root/drivers.h"

#include "core/variables.h"
#include "image/layers.h"
#include "image/layers_view.h"
#include "launch/root_key.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace containerize::root {

gpu::Injection find_drivers(const image::TreeView& root, const manifest::Manifest& manifest,
                            const std::string& prefix) {
    const auto policy = gpu::parse_policy(manifest.settings.gpu);
    std::map<std::string, std::string> variables;
    for (const auto& variable : launch::root_variables)
        if (const char* value = value_of(variable.name)) variables[variable.name.name()] = value;
    const auto layers = manifest::open_layers(manifest, prefix);
    std::optional<image::LayersView> environment;
    if (layers) environment.emplace(**layers);
    auto found = gpu::find({.policy = policy.value_or(gpu::vendors),
                            .libraries = manifest.settings.host_libraries,
                            .has_devices = !manifest.settings.base.isolate,
                            .host_root = "/",
                            .variables = std::move(variables),
                            .image = root,
                            .environment = environment ? &*environment : nullptr,
                            .prefix = prefix});
    if (!policy) found.warnings.push_back(to_string(policy.error()));
    return found;
}

} // namespace containerize::root
