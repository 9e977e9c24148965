// What the user asked for, looked at before anything is made.
#pragma once

#include "install/build.h"
#include "install/tykky_installation.h"
#include "pip/interpreter.h"
#include "runtime/manifest.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"
#include "spec/spec.h"
#include "util/error.h"
#include "util/process.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::install {

struct RequirementsFile {
    std::filesystem::path file;
    spec::Requirements read;
};

struct Inputs {
    std::filesystem::path prefix;            ///< absolute, without links
    std::filesystem::path spec;              ///< likewise; empty for an update without one
    std::filesystem::path working_directory; ///< the user's; local paths in requirements are relative to it
    spec::SpecKind kind = spec::SpecKind::requirements;
    spec::Requirements requirements;                 ///< of kind requirements
    std::optional<spec::CondaEnvironment> conda;     ///< what must be solved
    std::optional<spec::LockedEnvironment> locked;   ///< what must not
    std::vector<RequirementsFile> more_requirements; ///< -r, beside a lock or of an update
    conda::Config conda_config;
    Environment environment; ///< the user's, less what would lead a Python astray
    pip::Interpreter interpreter;
    std::optional<std::filesystem::path> uv;
    std::vector<std::string> wrapper_paths;          ///< relative to the prefix, "bin" first
    std::vector<std::string> optional_wrapper_paths; ///< those of them that only some environments have
    std::optional<std::uint32_t> source_date_epoch;
    std::filesystem::path wrap_source; ///< of wrap-install: the software on disk; absolute, without links
    runtime::Base base;                ///< that the programs have
    std::vector<runtime::Bind> binds;  ///< likewise
    std::filesystem::path mask;        ///< a directory that the image is to cover; empty for none
    std::optional<TykkyInstallation> tykky; ///< that is to be imported
    std::vector<std::string> programs;      ///< of wrap-container: absolute paths in the base

    std::string mode = "venv"; ///< what tykky calls it, for scripts: "conda", "venv", "wrapdisk"

    /// Every file that the user gave: requirements with what they include, and scripts.
    std::vector<std::filesystem::path> files;
};

Result<Inputs> check_inputs(const BuildOptions& options);

/// The same for software that is on disk already.
Result<Inputs> check_wrap(const BuildOptions& options, const std::filesystem::path& source, bool mask);

/// The same for an installation of tykky.
Result<Inputs> check_import(const BuildOptions& options, const std::filesystem::path& directory);

/// The same for programs of a container.
Result<Inputs> check_wrap_container(const BuildOptions& options);

/// The same for a change of an installation.
Result<Inputs> check_update(const BuildOptions& options, const runtime::Manifest& previous);

/// The part of it that tells what is to be installed, for who wants no more than that.
Status read_spec(const BuildOptions& options, Inputs& inputs);

} // namespace containerize::install
