// What kind of input the user gave, told by its content.
#pragma once

#include "util/error.h"

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

/// By the content; the name decides only between kinds that the content leaves open. `name` is a file name.
SpecKind recognise(std::string_view content, std::string_view name);

/// "a conda environment file", for messages.
std::string describe(SpecKind kind);

/// Reads the file and sees that it is of a kind that this version can build. The message names the kind that
/// it is, and how to make a requirements file of it where there is a way.
Result<SpecKind> recognise_supported(const std::filesystem::path& file);

} // namespace containerize::spec
