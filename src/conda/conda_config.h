// Reads conda's configuration as conda and mamba do: .condarc files, CONDA_* variables, tokens and logins.
#pragma once

#include "core/error.h"
#include "core/located.h"
#include "http/http.h"
#include "util/process.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace containerize::conda {

enum class ChannelPriority { strict, flexible, disabled };

/// With the words of conda's configuration.
http::Settings default_http();

/// An address from which to fetch what is at URLs with the prefix, which ends before a slash.
struct UrlMirror {
    std::string prefix, url; ///< http or https, without logins and slashes at the end
};

/// The values are those without any file or variable (--no-config).
struct Config {
    std::vector<Located> channels;         ///< as written; highest priority first
    std::vector<Located> default_channels; ///< the meaning of `defaults`; empty: Anaconda's own
    std::string channel_alias = "https://conda.anaconda.org";
    std::map<std::string, std::string> custom_channels; ///< e.g. "pkgs/main" -> the parent URL
    std::map<std::string, std::vector<std::string>> custom_multichannels; ///< a name for several channels
    std::map<std::string, std::vector<std::string>> mirrored_channels;    ///< name -> URLs, best first
    std::string s3_server = "https://s3.us-east-1.amazonaws.com";         ///< of the buckets in s3:// URLs
    std::optional<Error> s3_problem;    ///< why s3:// URLs cannot be used: what the environment says is wrong
    std::vector<UrlMirror> url_mirrors; ///< of our own configuration, not conda's; best first
    std::vector<std::string> allowed_channels, denied_channels; ///< if empty, all are allowed and none denied
    /// Channels named by the machine's own files (/etc/conda, /var/lib/conda) under channels and
    /// default_channels: their author is taken to have accepted the channels' terms. Files in home
    /// directories do not count, as conda itself writes `defaults` there.
    std::vector<Located> site_channels;

    ChannelPriority channel_priority = ChannelPriority::flexible;
    std::vector<Located> pinned_packages;     ///< specs that always apply
    std::vector<Located> disallowed_packages; ///< specs of packages that must not be installed
    std::vector<Located> default_packages;    ///< create_default_packages: specs for every new environment
    bool pip_with_python = true;              ///< add_pip_as_python_dependency
    std::vector<std::filesystem::path> pkgs_dirs; ///< conda's package caches, which are only read
    bool offline = false;
    bool use_shards = true;     ///< repodata_use_shards
    int local_repodata_ttl = 1; ///< seconds; 0: always ask; 1: as long as the server says

    http::Settings http = default_http();
    std::map<std::string, std::string> tokens; ///< "host" or "host/path" -> the token in "/t/TOKEN/" URLs

    std::vector<std::filesystem::path> files; ///< the files that were read
};

/// Takes the server for s3:// URLs, and the login for it, from the variables AWS_...
void read_s3(const Environment& environment, Config& config);

/// Reads all sources. Later ones take precedence, and items of their lists come first. Each directory is
/// searched for .condarc, condarc, condarc.d/*.yml and .mambarc:
///   /etc/conda, /var/lib/conda, the root prefix ($CONDA_EXE's, $MAMBA_ROOT_PREFIX, $CONDA_ROOT),
///   $XDG_CONFIG_HOME/conda, ~/.config/conda, ~/.conda, then ~/.condarc, ~/.mambarc, $CONDA_PREFIX, $CONDARC,
///   $MAMBARC, and the variables CONDA_CHANNELS etc.
/// Mistakes are input errors with file:line. Warns about unsupported keys that would change what is
/// installed; other unknown keys go to the detailed log. `root` replaces "/" in tests.
Result<Config> read_config(const Environment& environment, const std::filesystem::path& root = "/");

} // namespace containerize::conda
