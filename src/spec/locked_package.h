// Handles single packages of lock files in any format.
#pragma once

#include "core/error.h"
#include "spec/conda_environment.h"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace containerize::spec {

/// Sets url, download_url and channel. Only download_url keeps credentials: it is never written to files.
void set_address(conda::PackageRecord& record, const std::string& url, const std::string& channel);

/// Returns the record for a package's URL or path, optionally followed by "#" and a checksum.
Result<conda::PackageRecord> record_of_url(const std::string& text, const std::filesystem::path& file,
                                           const std::string& where);

/// A git repository as written by pixi, uv and conda-lock: "git+URL@COMMIT",
/// "git+URL?rev=TAG&subdirectory=D#COMMIT" and mixed forms.
struct GitSource {
    std::string url;    ///< without "git+"
    std::string commit; ///< empty if only a branch or tag is named
    std::string subdirectory;
};
/// Returns nothing if `text` does not start with "git+".
std::optional<GitSource> parse_git_source(std::string_view text);

/// The URL in the form in which none of it is a marker for pip, which could contain the checksum: pip reads
/// one after a semicolon, and ends a URL at a blank.
std::string without_marker(const std::string& url);

/// A pip package in a lock.
struct LockedRequirement {
    std::string name = {}, version = {};
    std::string location = {}; ///< URL, or path relative to the lock; empty if unknown
    std::string sha256 = {};
    bool editable = false;
};

/// The line with which pip installs exactly this package.
Result<std::string> requirement_text(const LockedRequirement& package, const std::filesystem::path& lock,
                                     const std::string& where);

/// Adds this line, and what to expect afterwards.
Status add_requirement(const LockedRequirement& package, const std::filesystem::path& lock,
                       const std::string& where, LockedEnvironment& locked);

/// The error for a package without a checksum, in whose place any package could come.
std::unexpected<Error> refuse_unverifiable(const std::string& name, const std::string& where);

/// Adds a conda package.
void add_conda_package(conda::PackageRecord record, LockedPackage expected, LockedEnvironment& locked);

/// The scalar at a key; empty if there is none.
std::string scalar(const YAML::Node& node, const char* key);

/// Reads a list of match specs, or conda-lock's mapping of names to versions.
std::vector<std::string> dependency_list(const YAML::Node& node);

/// Adds to a YAML error which kind of file it is about, such as "pixi lock file".
Error of_lock(Error error, const std::string& kind);

/// Returns the first of `keys` that is missing; empty if all are there.
std::string missing_key(const YAML::Node& root, std::initializer_list<const char*> keys);
/// The error for a lock file in which `key` is missing.
std::unexpected<Error> refuse_incomplete(const std::filesystem::path& file, const std::string& kind,
                                         const std::string& key);

/// The error for a lock file that has packages only for other `platforms`.
std::unexpected<Error> refuse_platform(const std::filesystem::path& file, const std::string& subdir,
                                       const std::set<std::string>& platforms);

/// Readers for the individual formats (LockReader).
Result<LockedEnvironment> read_explicit(const std::filesystem::path& file, const LockChoice& choice);
Result<LockedEnvironment> read_own_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<LockedEnvironment> read_conda_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<LockedEnvironment> read_pixi_lock(const std::filesystem::path& file, const LockChoice& choice);

} // namespace containerize::spec
