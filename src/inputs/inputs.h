// Checks and reads everything the user gave, before anything is created.
#pragma once

#include "core/error.h"
#include "inputs/build_options.h"
#include "inputs/tykky_installation.h"
#include "manifest/manifest.h"
#include "pip/python_choice.h"
#include "prefix/records.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"
#include "spec/spec.h"
#include "util/process.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::inputs {

struct RequirementsFile {
    std::filesystem::path file;
    spec::Requirements read;
};

struct Inputs {
    std::filesystem::path prefix;            ///< absolute, without symlinks
    std::filesystem::path spec;              ///< likewise; empty for an update without a file
    std::filesystem::path working_directory; ///< the user's; pip resolves local paths against it
    // One of these is what `spec` describes.
    std::optional<spec::Requirements> requirements; ///< for pip alone, with a Python of the host or base
    std::optional<spec::CondaEnvironment> conda;    ///< an environment that must be solved
    std::optional<spec::LockedEnvironment> locked;  ///< a lock, which is not solved
    /// -r, in addition to a lock or in an update; or `spec`, if `conda` is Python for it
    std::vector<RequirementsFile> more_requirements;
    conda::Config conda_config;
    Environment environment;  ///< the user's, without variables that would misdirect Python
    pip::PythonChoice python; ///< for requirements; with a base, made by the builder unless it is conda's
    std::optional<std::filesystem::path> uv;
    std::vector<std::string> wrapper_paths;          ///< relative to the prefix, starting with "bin"
    std::vector<std::string> optional_wrapper_paths; ///< the subset that may be missing without an error
    std::optional<std::uint32_t> source_date_epoch;
    std::filesystem::path wrap_source; ///< for wrap-install: the software on disk; absolute, without symlinks
    manifest::LaunchSettings settings; ///< of the state that is made; find_base() resolves the base
    std::filesystem::path mask;        ///< a directory over which the image is mounted, too; empty for none
    std::optional<TykkyInstallation> tykky; ///< for import-tykky
    std::vector<std::string> programs;      ///< for wrap-container: absolute paths in the base

    std::string mode = "venv"; ///< tykky's term: "conda", "venv", "wrapdisk" or "wrapcont"

    /// Every file that the user gave: requirements with everything they include, and scripts.
    std::vector<std::filesystem::path> files;
    std::vector<prefix::Input> kept; ///< the content of `files`, for the installation's records

    /// The variables and pip's lines of the environment file or of the lock, which one of them is.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& variables() const {
        return conda ? conda->variables : locked->variables;
    }
    [[nodiscard]] const std::vector<Located>& pip_lines() const { return conda ? conda->pip : locked->pip; }
};

Result<Inputs> check_inputs(const BuildOptions& options);

/// Like check_inputs(), for software that is already installed in `source`.
Result<Inputs> check_wrap(const BuildOptions& options, const std::filesystem::path& source, bool mask);

/// Like check_inputs(), for an installation made by tykky.
Result<Inputs> check_import(const BuildOptions& options, const std::filesystem::path& directory);

/// Like check_inputs(), for programs in a container.
Result<Inputs> check_wrap_container(const BuildOptions& options);

/// Like check_inputs(), for an update of the installation that `previous` describes.
Result<Inputs> check_update(const BuildOptions& options, const manifest::Manifest& previous);

/// Reads options.spec and what is needed to interpret it, and no other option.
Status read_spec(const BuildOptions& options, Inputs& inputs);

} // namespace containerize::inputs
