// Conda's configuration: .condarc files, CONDA_* variables, tokens and logins, as conda and mamba read them.
#pragma once

#include "util/error.h"
#include "util/http.h"
#include "util/process.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
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
    /// What the machine's own files (/etc/conda, /var/lib/conda) name under channels and default_channels:
    /// whoever wrote it has the terms of those channels in mind. Files in a home directory do not count:
    /// conda itself writes `defaults` there.
    std::vector<Located> site_channels;

    ChannelPriority channel_priority = ChannelPriority::flexible;
    std::vector<Located> pinned_packages;         ///< specs that hold whatever else is asked for
    std::vector<Located> disallowed_packages;     ///< specs of what is never installed
    std::vector<Located> default_packages;        ///< create_default_packages: specs for each new environment
    bool pip_with_python = true;                  ///< add_pip_as_python_dependency
    std::vector<std::filesystem::path> pkgs_dirs; ///< conda's package caches: read, never written
    bool offline = false;
    int local_repodata_ttl = 1; ///< seconds; 0: ask each time; 1: for as long as the server says

    http::Settings http;
    std::map<std::string, std::string> tokens; ///< "host" or "host/path" -> the token of "/t/TOKEN/" URLs

    std::vector<std::filesystem::path> files; ///< those that were read

    /// As if there were no file and no variable (--no-config).
    static Config defaults();
};

/// $NAME and ${NAME} in channels and values of .condarc and of environment files become what the variable
/// says; what is not set stays as it is.
std::string expand_variables(std::string_view text, const Environment& environment);

/// Reads what is there; later sources win, and their list items come first. Directories are searched for
/// .condarc, condarc, condarc.d/*.yml and .mambarc:
///   /etc/conda, /var/lib/conda, the root prefix ($CONDA_ROOT, $MAMBA_ROOT_PREFIX, $CONDA_EXE's),
///   $XDG_CONFIG_HOME/conda, ~/.config/conda, ~/.conda, then ~/.condarc, ~/.mambarc, $CONDA_PREFIX, $CONDARC,
///   $MAMBARC, and the variables CONDA_CHANNELS etc.
/// Mistakes are input errors with file:line. Keys of conda that would change what is installed, and that mean
/// nothing to us, are warned of; others go to the detailed log.
/// `root` stands for "/" so that tests can bring their own /etc.
Result<Config> read_config(const Environment& environment, const std::filesystem::path& root = "/");

} // namespace containerize::conda
