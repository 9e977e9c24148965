// Determines the kind of an input file by its content.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace containerize::spec {

enum class SpecKind {
    requirements,
    environment_yaml,
    conda_explicit,
    conda_list_export,
    conda_lock,
    pixi_lock,
    lock, ///< our own
    pixi_toml,
    pylock,
    pyproject,
    uv_lock,
    poetry_lock,
    pipfile,
    setup_script,
    conda_recipe,
    container_recipe,
    archive,
    html,
    empty,
    unknown,
};

/// Uses the content, and the file's name (without directory) only if the content is ambiguous.
SpecKind recognise(std::string_view content, std::string_view name);

/// Returns, for example, "a conda environment file", for messages.
std::string describe(SpecKind kind);

/// Reads the file and determines its kind. Fails with an input error if that cannot be built; the message
/// names the kind and, if possible, how to convert it to a requirements file.
Result<SpecKind> recognise_supported(const std::filesystem::path& file);

} // namespace containerize::spec
