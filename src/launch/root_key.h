// Which root a launch needs, as part of its session's name. Launchers use this, so it must be fast: no
// parsing.
#pragma once

#include "core/variable_table.h"

#include <array>
#include <string>
#include <string_view>

namespace containerize::launch {

/// The file with the root's name, in installations whose programs see more or other than the host's root.
inline constexpr const char* root_file = "libexec/root";
/// How such names begin: for an image or a directory as base, for one that shows nothing else, and for the
/// host's root with binds.
inline constexpr std::string_view image_root = "image-";
inline constexpr std::string_view isolated_root = "isolated-";
inline constexpr std::string_view host_root = "host-";

struct RootVariable {
    Variable name;
    bool binds;           ///< a list of binds
    bool for_images_only; ///< without effect on the host's root
};
/// Variables by which callers change the root.
inline constexpr std::array<RootVariable, 10> root_variables = {{
    {.name = "CONTAINERIZE_BIND", .binds = true, .for_images_only = false},
    {.name = "CW_EXTRA_BIND_MOUNTS", .binds = true, .for_images_only = false},
    {.name = "APPTAINER_BIND", .binds = true, .for_images_only = true},
    {.name = "APPTAINER_BINDPATH", .binds = true, .for_images_only = true},
    {.name = "SINGULARITY_BIND", .binds = true, .for_images_only = true},
    {.name = "SINGULARITY_BINDPATH", .binds = true, .for_images_only = true},
    {.name = "CONTAINERIZE_GPU", .binds = false, .for_images_only = true},
    {.name = "NVIDIA_VISIBLE_DEVICES", .binds = false, .for_images_only = true},
    {.name = "NVIDIA_DRIVER_CAPABILITIES", .binds = false, .for_images_only = true},
    {.name = "CUDA_MPS_PIPE_DIRECTORY", .binds = false, .for_images_only = true},
}};
/// Other variables of the caller that a session needs to assemble a root.
inline constexpr std::array<Variable, 3> user_variables = {"USER", "HOME", "SHELL"};

/// The content of `root_file`; empty if there is none.
std::string recorded_root(const std::string& prefix);

/// The root that the installation at `prefix` needs, as part of a session's name; empty for the caller's own
/// root as it is.
std::string root_key(const std::string& prefix);

/// Whether a base has this top-level directory itself, so that the host's is not shown.
bool is_of_base(std::string_view top_level_name);

/// A hash in 16 hexadecimal digits. It does not resist deliberate collisions.
std::string short_hash(std::string_view text);

} // namespace containerize::launch
