// The formats of input files: one table, by which a file is recognised and read.
#pragma once

#include "core/error.h"

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace containerize::spec {

struct CondaEnvironment;
struct ConvertedFile;
struct LockChoice;
struct LockedEnvironment;
struct Requirements;
class Sample; // a file's text, as the table's functions see it
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
    script, ///< of Python, with metadata (PEP 723)
    uv_lock,
    poetry_lock,
    pdm_lock,
    pipfile,
    pipfile_lock,
    setup_script,
    conda_recipe,
    container_recipe,
    archive,
    html,
    empty,
    toml, ///< of unknown kind
    unknown,
};

// What a file's reader makes of it.
using RequirementsReader = Result<Requirements> (*)(const std::filesystem::path& file,
                                                    const std::filesystem::path& working_directory);
using EnvironmentReader = Result<CondaEnvironment> (*)(const std::filesystem::path& file,
                                                       const LockChoice& choice);
using ConvertedReader = Result<ConvertedFile> (*)(const std::filesystem::path& file,
                                                  const LockChoice& choice);
using LockReader = Result<LockedEnvironment> (*)(const std::filesystem::path& file, const LockChoice& choice);

struct Format {
    SpecKind kind;
    std::string_view description; ///< for messages: "a conda environment file"
    /// Whether a file has this format. The first format of the table that says so is taken.
    bool (*is)(const Sample& sample) = nullptr;
    /// Asked if no format is sure: whether a file may have it, by its name or by what is left of it.
    bool (*may_be)(const Sample& sample) = nullptr;
    /// Without one, the format is only recognised, and refused with `advice`.
    std::variant<std::monostate, RequirementsReader, ConvertedReader, EnvironmentReader, LockReader> reader =
        {};
    std::string_view advice = "Give a conda environment.yml or a pip requirements.txt.";
    /// The options that select parts of such a file: "--category".
    std::array<std::string_view, 2> part_options = {};
    bool sorted = false; ///< of locks: each package comes after what it depends on
};

/// In the order in which they are tried.
std::span<const Format> formats();
const Format& format_of(SpecKind kind);

/// Uses the content, and the file's name (without directory) only if the content is ambiguous.
SpecKind recognise(std::string_view content, std::string_view name);

/// Returns, for example, "a conda environment file", for messages.
std::string describe(SpecKind kind);

/// Reads the file and determines its kind. Fails with an input error if that has no reader; the message names
/// the kind and, if possible, how to convert it to a requirements file.
Result<SpecKind> recognise_supported(const std::filesystem::path& file);

} // namespace containerize::spec
