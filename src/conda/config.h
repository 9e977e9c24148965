// Conda's configuration: .condarc files, CONDA_* variables, tokens and logins, as conda and mamba read them.
#pragma once

#include "util/error.h"
#include "util/http.h"
#include "util/process.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace containerize::conda {

/// A text that the user wrote, and where: "env.yml:4", "/etc/conda/.condarc:2", "CONDA_CHANNELS".
struct Located {
    std::string text, where;
};

enum class ChannelPriority { strict, flexible, disabled };

struct Config {
    std::vector<Located> channels;         ///< as the user would type them; most important first
    std::vector<Located> default_channels; ///< what `defaults` means; empty: Anaconda's own
    std::string channel_alias = "https://conda.anaconda.org";
    std::map<std::string, std::string> custom_channels; ///< "pkgs/main" -> the URL that it is below
    std::map<std::string, std::vector<std::string>> custom_multichannels; ///< one name for several channels
    std::map<std::string, std::vector<std::string>> mirrored_channels;    ///< name -> URLs in their order
    std::vector<std::string> allowed_channels, denied_channels;           ///< empty: all, none
    /// The machine's own configuration (/etc/conda, /var/lib/conda) names Anaconda's channels: whoever wrote
    /// it has their terms in mind. What stands in a home directory does not count: conda itself writes it
    /// there.
    bool site_allows_defaults = false;

    ChannelPriority channel_priority = ChannelPriority::flexible;
    std::vector<Located> pinned_packages;
    std::vector<std::filesystem::path> pkgs_dirs; ///< conda's package caches: read, never written
    bool offline = false;
    int local_repodata_ttl = 1; ///< seconds; 0: ask each time; 1: for as long as the server says

    http::Settings http;
    std::map<std::string, std::string> tokens; ///< "host" or "host/path" -> the token of "/t/TOKEN/" URLs

    std::vector<std::filesystem::path> files; ///< those that were read

    /// As if there were no file and no variable (--no-config).
    static Config defaults();
};

/// Reads what is there; later sources win, and their list items come first:
///   /etc/conda/{.condarc,condarc,condarc.d/,.mambarc}, /var/lib/conda/..., $CONDA_ROOT or
///   $MAMBA_ROOT_PREFIX, ~/.config/conda/, ~/.conda/, ~/.condarc, ~/.mambarc, $CONDA_PREFIX/.condarc,
///   $CONDARC, $MAMBARC, CONDA_*.
/// Mistakes are input errors with file:line; keys that mean nothing to us go to the detailed log.
Result<Config> read_config(const Environment& environment);

} // namespace containerize::conda
