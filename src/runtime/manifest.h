// containerize.json: what an installation is. Written by install/, read by the session that mounts it.
#pragma once

#include "image/layers.h"
#include "runtime/bind.h"
#include "runtime/environment.h"
#include "runtime/launch_plan.h"
#include "runtime/manifest_name.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::runtime {

inline constexpr int manifest_format = 1;

struct ImageFile {
    std::string file; ///< relative to the installation, below it
    std::uint64_t size = 0;
    std::string sha256;
};

/// The root filesystem that programs run in.
struct Base {
    std::string reference = "host"; ///< as it was asked for
    std::string digest;         ///< "sha256:..." of what the reference named; empty for host and directories
    std::filesystem::path file; ///< an image's file or a directory, absolute. Empty
                                ///< for "host": the root of whoever starts a program
    std::uint64_t offset = 0;   ///< of the squashfs in the file
    bool isolate = false;       ///< nothing of the host is seen but what is bound
    /// What an image's configuration sets, before the environment's own activation.
    std::vector<EnvironmentChange> environment;
    [[nodiscard]] bool is_host() const { return file.empty(); }
};

struct Manifest {
    std::string tool_version;
    std::filesystem::path prefix; ///< where it was built for; inside, it always exists
    std::string created;          ///< UTC, ISO 8601
    Base base;
    std::vector<Bind> binds;                 ///< of every launch, beside what each launch may ask for
    std::vector<std::string> host_libraries; ///< of the host, that an image's root gets where a node has them
    std::string gpu =
        "auto"; ///< which vendor's libraries an image's root gets: auto, nvidia, amd, intel, none
    std::string engine = "auto";   ///< what runs it: auto, native, apptainer, singularity
    std::string stage = "auto";    ///< whether sessions copy its images first (staged_image.h)
    std::string prefetch = "auto"; ///< how its images are read ahead (cold_start.h)
    bool kernel_mount = false; ///< whether root's sessions let the kernel mount its image (kernel_mount.h)
    ImageFile image;
    std::vector<ImageFile> layers; ///< of updates, over the image; the newest last
    unsigned state = 1;            ///< number of this state of the installation: updates count on
    unsigned parent = 0;           ///< the state that it was made from; 0 for none
    std::filesystem::path mask;    ///< a directory of the host over which the image is shown; empty for none
    std::vector<std::string> wrapper_paths = {"bin"}; ///< directories with wrappers, relative to the prefix
    /// What activating the environment would change. Left undone where the caller has another venv active on
    /// top.
    std::vector<EnvironmentChange> activation;
    /// Shell scripts, relative to the prefix, that activating sources at each launch, after those changes:
    /// what they do depends on the caller's environment, so that it could not be recorded.
    std::vector<std::string> activation_scripts;
    std::vector<EnvironmentChange> environment; ///< always applied (--environ)
    nlohmann::json build; ///< provenance, for `inspect`: spec kind, python, installer, times

    /// Image and layers, the lowest first.
    [[nodiscard]] std::vector<ImageFile> images() const;
};

/// `directory` is where the installation is now, which need not be where it was built for.
Result<Manifest> read_manifest(const std::filesystem::path& directory);
/// Opens the images of an installation at `directory`, and sees that each has its size.
Result<std::vector<image::Layers::ImageFile>> open_images(const Manifest& manifest,
                                                          const std::filesystem::path& directory);
Result<Manifest> parse_manifest(std::string_view text, const std::filesystem::path& file);
std::string to_text(const Manifest& manifest);

/// What a launcher must know of an installation that is at `prefix`, and of which `identity` is known.
LaunchPlan plan_of(const Manifest& manifest, const std::string& prefix, std::string identity);

/// An installation that is now at `prefix` is shown where it was built for, too: refused where something is
/// there, which its image would hide from other programs.
Status check_first_path(const Manifest& manifest, const std::string& prefix);

/// Whether `directory` holds an installation of ours.
bool is_installation(const std::filesystem::path& directory);
/// The input error for a directory that holds none.
std::unexpected<Error> no_installation(const std::filesystem::path& directory);
/// The installation that `program` (a wrapper, or a link to one) belongs to; empty if it is no wrapper of
/// ours.
std::filesystem::path installation_of_program(const std::filesystem::path& program);

} // namespace containerize::runtime
