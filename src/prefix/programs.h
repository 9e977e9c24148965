// The copies of the launcher and of the session program that an installation carries.
#pragma once

#include "manifest/manifest.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::prefix {

enum class Age {
    current,     ///< the same files as this containerize's
    other_build, ///< of the same version, but other files
    older,
    newer
};

struct Programs {
    std::string version;
    Age age = Age::current;
};
/// What the installation at `prefix` carries, compared with the programs in `libexec`.
Programs programs_of(const manifest::Manifest& manifest, const std::filesystem::path& prefix,
                     const std::filesystem::path& libexec);

/// How the programs differ from this containerize's, as text that ends a line; empty for current ones.
std::string difference(const Programs& programs);
/// The command that replaces the programs; empty if that is not needed or not possible.
std::string command_to_upgrade(const Programs& programs, const std::filesystem::path& prefix);

/// Whether the wrappers in `wrapper_paths` and the session program at `prefix` are those in `assembly`.
bool has_programs(const std::filesystem::path& prefix, const std::filesystem::path& assembly,
                  const std::vector<std::string>& wrapper_paths);

} // namespace containerize::prefix
