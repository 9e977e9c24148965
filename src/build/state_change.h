// The common part of commands that change what an installation shows without running anything in it.
#pragma once

#include "build/context.h"
#include "core/error.h"
#include "manifest/manifest.h"

#include <cstddef>
#include <filesystem>
#include <vector>

namespace containerize::build {

/// Reads an installation that may be changed, as the inputs of with_build_context().
Result<inputs::Inputs> inputs_for_change(const inputs::BuildOptions& options);

/// An assembly with the wrappers of one state and this version's programs.
class StateChange {
public:
    explicit StateChange(const Workplace& place) : place_(place) {}

    /// Returns the number of commands.
    Result<std::size_t> begin(const manifest::Manifest& manifest);
    [[nodiscard]] const std::filesystem::path& assembly() const { return assembly_; }
    /// Publishes the state. `kept` are the other states, which remain available.
    Status finish(const manifest::Manifest& manifest, std::vector<manifest::Manifest> kept);

private:
    Workplace place_;
    std::filesystem::path assembly_;
};

} // namespace containerize::build
