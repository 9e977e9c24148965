// Which root a launch needs: part of its session's name. For launchers, so without anything that must be
// parsed.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace containerize::runtime {

/// In an installation whose programs see another root than the host's, or more than is there: its name.
inline constexpr const char* root_file = "libexec/root";
/// How such a name begins where the base is an image (or a directory), and where nothing else is seen.
inline constexpr std::string_view image_root = "image-";
inline constexpr std::string_view isolated_root = "isolated-";
inline constexpr std::string_view host_root = "host-";

struct RootVariable {
    const char* name;
    bool binds;           ///< a list of binds
    bool for_images_only; ///< of no meaning where the root is the host's
};
/// The caller's wishes.
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
/// What else a session must know of who started it, to put a root together.
inline constexpr std::array<const char*, 3> user_variables = {"USER", "HOME", "SHELL"};

/// What `root_file` says; empty if there is none.
std::string recorded_root(const std::string& prefix);

/// Empty for the caller's own root as it is. `prefix` is the installation.
std::string root_key(const std::string& prefix);

/// Top-level directories that a base brings itself: those of the host are not seen.
bool is_of_base(std::string_view top_level_name);

/// 16 hexadecimal digits; tells texts apart, but not those that someone made to be alike.
std::string short_hash(std::string_view text);

} // namespace containerize::runtime
