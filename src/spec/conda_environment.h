// Conda environments as users give them: environment files, which must be solved, and lists, which are not.
#pragma once

#include "conda/config.h"
#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "spec/spec.h"
#include "util/error.h"

#include <filesystem>
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

struct LockedEnvironment {
    std::vector<conda::PackageRecord> packages; ///< each with its URL
    std::map<std::string, std::string>
        requested;            ///< by name: the spec that asked for it, where that is known
    std::vector<Located> pip; ///< lines of a requirements file
    /// Of our own locks: which of those somebody asked for, as pip normalises names.
    std::optional<std::vector<std::string>> pip_requested;
    std::vector<std::string> channels;
    std::vector<std::pair<std::string, std::string>> variables;
    std::optional<std::uint32_t> source_date_epoch; ///< of our own locks: what the image was made with
    std::vector<std::string> notes;
};

/// An explicit list, a conda-lock or pixi lock file, or one of ours; of several platforms, the packages of
/// `subdir` and noarch.
Result<LockedEnvironment> read_locked(const std::filesystem::path& file, SpecKind kind,
                                      const std::string& subdir);

/// Our own lock file: the same environment gives the same text.
std::string lock_text(const LockedEnvironment& locked, const std::string& subdir);

} // namespace containerize::spec
