// Single packages of lock files, whatever the format.
#pragma once

#include "spec/conda_environment.h"
#include "util/error.h"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace containerize::spec {

/// Credentials are for the download alone: all else of a record is written into files.
void set_address(conda::PackageRecord& record, const std::string& url, const std::string& channel);

/// The record of a package's URL or path, "#" and a checksum after it.
Result<conda::PackageRecord> record_of_url(const std::string& text, const std::filesystem::path& file,
                                           const std::string& where);

/// A repository as pixi, uv and conda-lock write it: "git+URL@COMMIT",
/// "git+URL?rev=TAG&subdirectory=D#COMMIT" and what lies between.
struct GitSource {
    std::string url;    ///< without "git+"
    std::string commit; ///< empty if only a branch or a tag is named
    std::string subdirectory;
};
/// Nothing if `text` does not begin with "git+".
std::optional<GitSource> parse_git_source(std::string_view text);

/// A package of pip's in a lock.
struct LockedRequirement {
    std::string name, version;
    std::string location; ///< URL, or path relative to the lock; empty if the lock names none
    std::string sha256;
    bool editable = false;
};

/// Adds the line with which pip installs exactly that, and what it then has to be.
Status add_requirement(const LockedRequirement& package, const std::filesystem::path& lock,
                       const std::string& where, LockedEnvironment& locked);

/// A package of a tool's lock that could be any: there is no checksum of it.
std::unexpected<Error> refuse_unverifiable(const std::string& name, const std::string& where);

/// Adds a package of conda.
void add_conda_package(conda::PackageRecord record, LockedPackage expected, LockedEnvironment& locked);

/// The text of a key; empty if there is none.
std::string scalar(const YAML::Node& node, const char* key);

/// A list of match specs, or conda-lock's mapping of names to versions.
std::vector<std::string> dependency_list(const YAML::Node& node);

/// Says of an error about YAML in what it is: `kind` is "pixi lock file".
Error of_lock(Error error, const std::string& kind);

/// The first of `keys` that a lock lacks; empty if it has them all.
std::string missing_key(const YAML::Node& root, std::initializer_list<const char*> keys);
/// `key`, and what would be below it, is missing.
std::unexpected<Error> refuse_incomplete(const std::filesystem::path& file, const std::string& kind,
                                         const std::string& key);

/// The readers of the single formats.
Result<LockedEnvironment> read_conda_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<LockedEnvironment> read_pixi_lock(const std::filesystem::path& file, const LockChoice& choice);

} // namespace containerize::spec
