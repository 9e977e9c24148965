// Conda environments as input: environment files, which must be solved, and locks, which list exact packages.
#pragma once

#include "conda/conda_config.h"
#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/virtual_packages.h"
#include "core/error.h"
#include "core/located.h"
#include "spec/spec.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::spec {

struct CondaDependency {
    conda::MatchSpec spec;
    std::string where; ///< "file:line"
};

/// A virtual package that an environment was declared for.
struct MachineRequirement {
    conda::VirtualPackage package;
    std::string where; ///< "file:line"
};

struct CondaEnvironment {
    std::string name;
    std::vector<Located> channels; ///< highest priority first
    bool no_defaults = false;      ///< `nodefaults`: ignore the configuration's channels
    std::vector<CondaDependency> dependencies;
    std::vector<CondaDependency> constraints; ///< restrict packages without requesting them
    std::vector<Located> pip;                 ///< lines of a requirements file
    std::vector<std::pair<std::string, std::string>> variables;
    std::optional<conda::ChannelPriority> channel_priority;
    /// Packages are chosen for a machine with these, one for each name.
    std::vector<MachineRequirement> machine;
    Located exclude_newer;          ///< as written; empty if it is not set
    std::vector<std::string> notes; ///< for the user: keys that have no effect here
};

/// Reads environment.yml. Mistakes are input errors with file:line and the line's text.
Result<CondaEnvironment> read_environment_yaml(const std::filesystem::path& file);

/// Reads the output of `conda list --export`: exact versions and builds, but no channels.
Result<CondaEnvironment> read_list_export(const std::filesystem::path& file);

/// Where pip found a package. Addresses have no logins.
struct PipSource {
    enum class Kind {
        unknown,
        index,      ///< a wheel or a source archive that an index names
        archive,    ///< the same, which the requirements name
        repository, ///< `url` at `commit`
        directory,
    };
    Kind kind = Kind::unknown;
    std::string file = {}; ///< of an index: the name of the file
    /// For an index empty if it contains a secret. Otherwise, a mark or ${NAME} is in place of the secret.
    std::string url = {};
    std::string sha256 = {}; ///< of the file; empty if unknown
    std::uint64_t size = 0;  ///< of the file; 0 if unknown
    std::string vcs = {}, commit = {};
    std::string subdirectory = {};
    bool editable = false;

    bool operator==(const PipSource&) const = default;
};

/// Whether an address has neither a mark or variable in place of a secret, nor a query, which may be one.
bool is_lasting(std::string_view url);

/// A package as a lock describes it, to compare with what was installed. Unknown members are empty.
struct LockedPackage {
    /// The name of a pip package is empty if the lock has only its `url`.
    std::string name = {}, version = {}, url = {};
    std::string build = {};  ///< for conda's packages
    std::string commit = {}; ///< for pip's packages from a repository
    bool directory = false;  ///< a local directory, whose content the lock cannot pin
    PipSource source = {};   ///< for pip's packages, from our own locks; not compared
};

struct LockedEnvironment {
    std::vector<conda::PackageRecord> packages; ///< each with its URL
    conda::Requests requested;                  ///< if known
    std::vector<Located> pip;                   ///< lines of a requirements file
    std::vector<LockedPackage> of_conda;        ///< expected values for `packages`, as far as known
    /// What the lines of `pip` install; not set if the lock does not list all of it.
    std::optional<std::vector<LockedPackage>> of_pip;
    /// From our own locks: the normalised names of packages that the user requested.
    std::optional<std::vector<std::string>> pip_requested;
    std::vector<std::string> channels;
    std::string
        exclude_newer; ///< from our own locks: the time from which on packages were left out; may be empty
    std::vector<std::pair<std::string, std::string>> variables;
    std::optional<std::uint32_t> source_date_epoch; ///< from our own locks: that of the original image
    std::vector<std::string> notes;
};

/// Selects a part of a lock file that has several.
struct LockChoice {
    std::string subdir;                       ///< platform; noarch packages are always included
    std::string environment = {};             ///< in a pixi lock file; empty: "default"
    std::vector<std::string> categories = {}; ///< in a conda-lock file, in addition to "main"
    std::vector<std::string> groups = {};     ///< of a Python project, in addition to its dependencies
    std::vector<std::string> extras = {};     ///< likewise
    /// The machine's virtual packages. Called only if a pixi lock file has several platforms for `subdir`.
    std::function<Result<std::vector<conda::VirtualPackage>>()> machine = {};
};

/// Reads an environment of a pixi.toml, or of a pyproject.toml with nothing but pixi's tables. What cannot be
/// done is refused.
Result<CondaEnvironment> read_pixi_toml(const std::filesystem::path& file, const LockChoice& choice);

/// Fails with an input error if `choice` selects a part of the file, by an option that is for another format.
Status check_choice(const Format& format, const std::filesystem::path& file, const LockChoice& choice);

/// Reads a file whose format has a LockReader. Fails with an input error.
Result<LockedEnvironment> read_locked(const std::filesystem::path& file, SpecKind kind,
                                      const LockChoice& choice);

/// The text of our own lock file. The same environment gives the same text.
std::string lock_text(const LockedEnvironment& locked, const std::string& subdir);

} // namespace containerize::spec
