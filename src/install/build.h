// Building an installation: from a requirements file to a directory that can be put on PATH.
#pragma once

#include "base/base.h"
#include "conda/config.h"
#include "conda/package_record.h"
#include "image/writer.h"
#include "pip/installer.h"
#include "runtime/bind.h"
#include "runtime/engine.h"
#include "runtime/environment.h"
#include "util/error.h"
#include "util/log.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::install {

/// What concerns conda's environments only.
struct CondaOptions {
    std::vector<std::filesystem::path> requirements; ///< further requirements for pip (-r)
    std::string cuda; ///< CUDA version of the nodes that it is for; empty: this machine's
    bool offline = false;
    bool use_config = true;              ///< .condarc and CONDA_ variables
    bool allow_defaults = false;         ///< Anaconda's channels
    bool constraints = true;             ///< pip may not replace what conda installed
    std::string environment;             ///< of a pixi lock file; empty: "default"
    std::vector<std::string> categories; ///< of a conda-lock file, beside "main"
};

/// What a configuration says beside the values of options.
struct SiteSettings {
    conda::Located cache; ///< the directory and who says so; empty: as conda::cache_directory() finds it
    /// Instead of what .condarc says: `channels` where it says nothing, or always if they are `forced`.
    /// Environment files that name channels have those.
    std::vector<conda::Located> channels, first_channels, last_channels;
    bool channels_forced = false;
    std::vector<conda::Located> machine_channels; ///< those of the machine's own file, for its terms
    std::vector<std::string> wrapper_paths;       ///< of new installations, for environments that have them
    /// Of every launch. The first are defaults, which --environ overrides.
    std::vector<runtime::EnvironmentChange> environment, forced_environment;
    unsigned max_jobs = 0;                               ///< 0: no limit
    runtime::Engine engine = runtime::Engine::automatic; ///< of new installations that ask for none
};

/// What comes first in an image.
enum class Layout {
    path,   ///< files in the order of their paths
    profile ///< those that were recorded, in the order in which they are wanted; then the rest
};
/// The error is an input error.
Result<Layout> parse_layout(std::string_view text);

struct BuildOptions {
    std::string prefix;
    /// "host", "auto", or what base/ knows; an update leaves it as it was. `isolate` and the rest of the
    /// three are the programs', not the build's.
    std::string base = "host";
    std::string auto_base; ///< what "auto" means where the host's C library is too old; empty: nothing
    base::Options bases;
    bool isolate = false;
    std::vector<runtime::Bind> binds;
    std::vector<std::string> host_libraries; ///< that a base gets of each node
    std::string gpu = "auto";
    std::filesystem::path spec;
    std::string python; ///< a path, a version, or empty
    pip::Installer installer = pip::Installer::automatic;
    bool uv = false; ///< uv becomes part of the environment, and installs the rest
    bool bundle_python = false;
    bool system_site_packages = false; ///< the interpreter's own packages, and the user's, are seen, too
    CondaOptions conda;
    std::optional<std::filesystem::path> pre_install, post_install, environ_script;
    std::vector<std::string> wrapper_paths;
    std::optional<runtime::Engine> engine; ///< asked for, or forced; an update else keeps what there is
    unsigned jobs = 0;                     ///< 0: by what this process may use
    image::Compression compression;
    std::uint32_t block_size = 128U << 10U;
    std::filesystem::path staging_parent; ///< empty: a node-local directory
    bool force = false;
    bool keep_files = false; ///< after a failure the staging directory stays, for a look at it
    log::Level log_level = log::Level::normal;
    std::optional<std::filesystem::path> log_copy; ///< the log goes there as well
    std::filesystem::path libexec;                 ///< where our own launcher and session programs are
    std::filesystem::path share;                   ///< where our templates are
    std::string command_line;                      ///< as typed, for the record
    mode_t umask_bits = 022;
    bool profile = true;                       ///< at the end it is recorded what programs read first
    std::vector<std::string> profile_commands; ///< for a shell; empty: the imports of all packages
    std::optional<Layout> layout;              ///< nothing: as the image was, or path
    std::string stage = "auto";                ///< of new installations (runtime/staged_image.h)
    std::string prefetch = "auto";             ///< of new installations (runtime/cold_start.h)
    bool kernel_mount = false;                 ///< of new installations (runtime/kernel_mount.h)
    SiteSettings site;
};

struct BuildSummary {
    std::filesystem::path prefix;
    std::uint64_t files = 0;
    std::uint64_t image_bytes = 0;
    std::size_t commands = 0;
    double seconds = 0;
    unsigned state = 0;
    bool unchanged = false; ///< an update found nothing to do: the installation is what it was
};

/// What an environment would get.
struct DryRun {
    std::vector<conda::PackageRecord> packages; ///< of conda, in link order
    std::size_t pip_lines = 0;                  ///< requirements for pip, which are not solved
};
/// Of a conda environment.
Result<DryRun> dry_run(const BuildOptions& options);

/// All or nothing: on failure nothing is left but the log, which the message names. Reports through
/// util/log.h.
Result<BuildSummary> build(const BuildOptions& options);

/// The same of a directory of software that is installed on disk; with `mask` the image covers that directory
/// wherever the installation runs.
Result<BuildSummary> wrap_install(const BuildOptions& options, const std::filesystem::path& source,
                                  bool mask);

/// The same of what tykky installed at `directory`, which stays as it is: its image is copied.
Result<BuildSummary> import_tykky(const BuildOptions& options, const std::filesystem::path& directory);

/// Of programs in the base (options.base) at options.wrapper_paths.
Result<BuildSummary> wrap_container(const BuildOptions& options);

} // namespace containerize::install
