// Conda environments as users give them: environment files, which must be solved, and lists, which are not.
#pragma once

#include "conda/config.h"
#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/virtual_packages.h"
#include "spec/spec.h"
#include "util/error.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace containerize::spec {

using conda::Located;

struct CondaDependency {
    conda::MatchSpec spec;
    std::string where; ///< "file:line"
};

struct CondaEnvironment {
    std::string name;
    std::vector<Located> channels; ///< most important first
    bool no_defaults = false;      ///< `nodefaults`: channels of the configuration do not count
    std::vector<CondaDependency> dependencies;
    std::vector<Located> pip; ///< lines of a requirements file
    std::vector<std::pair<std::string, std::string>> variables;
    std::optional<conda::ChannelPriority> channel_priority;
    std::vector<std::string> notes; ///< what the user should know: keys that mean nothing here
};

/// environment.yml. Mistakes are input errors with file:line and the line itself.
Result<CondaEnvironment> read_environment_yaml(const std::filesystem::path& file);

/// `conda list --export`: exact versions and builds, but no channels.
Result<CondaEnvironment> read_list_export(const std::filesystem::path& file);

/// What a lock says of a package, to be compared with what was installed; empty where it says nothing.
struct LockedPackage {
    std::string name, version;
    std::string build;      ///< of conda's packages
    std::string commit;     ///< of the repository that one of pip's comes from
    bool directory = false; ///< one of pip's is a directory, whose content no lock can fix
};

struct LockedEnvironment {
    std::vector<conda::PackageRecord> packages; ///< each with its URL
    conda::Requests requested;                  ///< where that is known
    std::vector<Located> pip;                   ///< lines of a requirements file
    std::vector<LockedPackage> of_conda;        ///< what `packages` are to be, as far as the lock says it
    /// What the lines of `pip` install; nothing if the lock cannot tell all of it.
    std::optional<std::vector<LockedPackage>> of_pip;
    /// Of our own locks: which of those somebody asked for, as pip normalises names.
    std::optional<std::vector<std::string>> pip_requested;
    std::vector<std::string> channels;
    std::vector<std::pair<std::string, std::string>> variables;
    std::optional<std::uint32_t> source_date_epoch; ///< of our own locks: what the image was made with
    std::vector<std::string> notes;
};

/// Which part of a lock file is wanted, where it has several.
struct LockChoice {
    std::string subdir;                       ///< the packages of that platform, and noarch
    std::string environment = {};             ///< of a pixi lock file; empty: "default"
    std::vector<std::string> categories = {}; ///< of a conda-lock file, beside "main"
    /// What the machine has, for a pixi lock file with several platforms of one subdir. Asked only then.
    std::function<Result<std::vector<conda::VirtualPackage>>()> machine = {};
};

/// An explicit list, a conda-lock or pixi lock file, or one of ours.
Result<LockedEnvironment> read_locked(const std::filesystem::path& file, SpecKind kind,
                                      const LockChoice& choice);

/// Our own lock file: the same environment gives the same text.
std::string lock_text(const LockedEnvironment& locked, const std::string& subdir);

} // namespace containerize::spec
