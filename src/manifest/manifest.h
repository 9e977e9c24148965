// containerize.json: what an installation is. Written by install/, read by the session that mounts it.
#pragma once

#include "core/error.h"
#include "image/layers.h"
#include "launch/launch_plan.h"
#include "manifest/launch_settings.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::manifest {

inline constexpr int manifest_format = 1;

struct ImageFile {
    std::string file; ///< relative to the installation, and below it
    std::uint64_t size = 0;
    std::string sha256;

    bool operator==(const ImageFile&) const = default;
};

struct Manifest {
    std::string tool_version;     ///< of the containerize that made this state
    std::string programs_version; ///< of the installation's programs, which all its states share
    std::filesystem::path prefix; ///< where it was built for; this path always exists inside
    std::string created;          ///< UTC, ISO 8601
    LaunchSettings settings;
    ImageFile image;
    std::vector<ImageFile> layers; ///< of updates, over the image; the newest last
    unsigned state = 1;            ///< number of this state of the installation, higher than all earlier ones
    unsigned parent = 0;           ///< the state that it was made from; 0 for none
    std::filesystem::path mask;    ///< a directory of the host over which the image is shown; empty for none
    std::vector<std::string> wrapper_paths = {"bin"}; ///< directories with wrappers, relative to the prefix
    /// What activating the environment changes. Skipped if another venv on top of the installation is active.
    std::vector<launch::EnvironmentChange> activation;
    /// Shell scripts, relative to the prefix, that activation sources at each launch after those changes.
    /// What they do depends on the caller's environment, so it could not be recorded.
    std::vector<std::string> activation_scripts;
    std::vector<launch::EnvironmentChange> environment; ///< always applied (--environ)
    nlohmann::json build; ///< provenance, for `inspect`: spec kind, python, installer, times

    /// Image and layers, the lowest first.
    [[nodiscard]] std::vector<ImageFile> images() const;
};

/// Reads the manifest in `directory`, where the installation is now. Fails if there is none, and with an
/// input error if this version cannot read it.
Result<Manifest> read_manifest(const std::filesystem::path& directory);
/// The rule for all commands that change an installation: one whose programs are of a newer containerize is
/// refused (Fault::input), because this version would put older ones in their place. `directory` is where it
/// is now.
Status check_not_newer(const Manifest& manifest, const std::filesystem::path& directory);
/// Opens the images of the installation at `directory`. Fails if one does not have its recorded size, or is
/// no image.
Result<std::vector<image::Layers::ImageFile>> open_images(const Manifest& manifest,
                                                          const std::filesystem::path& directory);
/// The same, as the tree that they show.
Result<std::unique_ptr<image::Layers>> open_layers(const Manifest& manifest,
                                                   const std::filesystem::path& prefix);
Result<Manifest> parse_manifest(std::string_view text, const std::filesystem::path& file);
std::string to_text(const Manifest& manifest);

/// The launch plan for the installation at `prefix`, whose manifest has this `identity`.
launch::LaunchPlan plan_of(const Manifest& manifest, const std::string& prefix, std::string identity);

/// The shell command that moves the installation at `prefix` back to its original path; empty if something
/// else is there. An empty directory does not count: a launch has made it as a mount point.
std::string command_to_move_back(const Manifest& manifest, const std::filesystem::path& prefix);

/// A moved installation, now at `prefix`, is also shown at its original path. Fails if that is not empty,
/// because the image would hide it from other programs.
Status check_first_path(const Manifest& manifest, const std::string& prefix);

/// Whether `directory` is an installation.
bool is_installation(const std::filesystem::path& directory);
/// Its path, resolved. Fails with an input error if it is none.
Result<std::filesystem::path> resolve_installation(const std::filesystem::path& directory);
/// The installation that `program` (a wrapper, or a link to one) belongs to; empty if it is not our wrapper.
std::filesystem::path installation_of_program(const std::filesystem::path& program);

} // namespace containerize::manifest
