// What a user asks of a build, from the command line and the configuration.
#pragma once

#include "base/base_image.h"
#include "conda/cache_directory.h"
#include "conda/conda_config.h"
#include "conda/package_record.h"
#include "conda/virtual_packages.h"
#include "core/cutoff.h"
#include "core/error.h"
#include "core/located.h"
#include "image/writer.h"
#include "launch/environment.h"
#include "manifest/launch_settings.h"
#include "pip/installer.h"
#include "util/cache_limits.h"
#include "util/log.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::inputs {

/// Options that say which packages to install. Most only apply to conda environments.
struct CondaOptions {
    std::vector<std::filesystem::path> requirements; ///< further pip requirements files (-r)
    std::string subdir = conda::this_subdir();       ///< the platform; builds are only for this machine's
    std::string cuda; ///< CUDA version of the target nodes; empty: that of this machine
    bool offline = false;
    bool use_config = true;                  ///< read .condarc and the CONDA_ variables
    bool allow_defaults = false;             ///< permit Anaconda's channels
    bool constraints = true;                 ///< pin conda's packages when pip installs
    std::string environment;                 ///< environment in a pixi lock file; empty: "default"
    std::vector<std::string> categories;     ///< categories of a conda-lock file, in addition to "main"
    std::vector<std::string> groups, extras; ///< of a Python project
};

/// What the configuration says in addition to the values of options.
struct SiteSettings {
    Located cache; ///< the directory and where it was set; empty: use conda::cache_directory()
    std::vector<conda::SiteCache> site_caches; ///< searched after the user's own one
    CacheLimits cache_limits;                  ///< for this user's packages
    /// `channels` replaces those of .condarc if that has none, or always if `channels_forced`; the others
    /// extend them. All are ignored if the environment file names channels.
    std::vector<Located> channels, first_channels, last_channels;
    bool channels_forced = false;
    std::vector<Located> machine_channels;  ///< named by the machine's own file
    std::vector<conda::UrlMirror> mirrors;  ///< of conda's channels
    std::vector<std::string> wrapper_paths; ///< for new installations; missing ones are ignored
    /// Set at every launch. --environ overrides the first list, but not the second.
    std::vector<launch::EnvironmentChange> environment, forced_environment;
    unsigned max_jobs = 0; ///< upper limit for jobs; 0: none
};

/// The order of file data in an image.
enum class Layout {
    path,   ///< sorted by path
    profile ///< recorded files first, in the order in which they are read; then the others
};
/// Fails with an input error if `text` is not a layout.
Result<Layout> parse_layout(std::string_view text);

struct BuildOptions {
    std::string prefix;
    /// For new installations: an update keeps the recorded settings. `base.reference` is "host", "auto", or
    /// what base/ resolves. The build itself is never isolated.
    manifest::LaunchSettings settings;
    bool change_engine = false; ///< an update records settings.engine, too
    std::string auto_base;      ///< the base for "auto" if the host's C library is too old; empty: fail
    Result<base::Options> bases = base::Options(); ///< or why there are none: matters only with a base
    std::filesystem::path spec;
    std::string python;        ///< for pip environments, as for pip::choose_python(); empty: no wish
    bool python_typed = false; ///< `python` is not from the configuration
    pip::Installer installer = pip::Installer::automatic;
    bool uv = false; ///< add uv to the environment and install the rest with it
    bool bundle_python = false;
    bool system_site_packages = false;   ///< also see the packages of the interpreter and of the user
    std::optional<Cutoff> exclude_newer; ///< for conda's and pip's packages
    CondaOptions conda;
    std::optional<std::filesystem::path> pre_install, post_install, environ_script;
    std::vector<std::string> wrapper_paths;
    unsigned jobs = 0; ///< worker threads; 0: as many as the available CPUs and memory allow
    image::Compression compression;
    std::uint32_t block_size = 128U << 10U;
    std::filesystem::path staging_parent; ///< empty: choose a node-local directory
    bool force = false;
    bool keep_files = false; ///< keep the staging directory after a failure, for debugging
    log::Level log_level = log::Level::normal;
    std::optional<std::filesystem::path> log_copy; ///< the log is also written here
    std::filesystem::path libexec;                 ///< holds the launcher and session programs
    std::filesystem::path share;                   ///< holds the templates
    std::string command_line;                      ///< as typed, for the build record
    mode_t umask_bits = 022;
    bool profile = true;                       ///< record what programs read first, after the build
    std::vector<std::string> profile_commands; ///< shell commands to record; empty: import all packages
    std::optional<Layout> layout;              ///< not set: keep that of the image, or `path` for a new one
    SiteSettings site;
};

} // namespace containerize::inputs
