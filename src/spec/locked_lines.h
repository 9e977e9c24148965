// Lines of a requirements file for the packages of a lock.
#pragma once

#include "core/error.h"
#include "spec/locked_package.h"
#include "spec/marker.h"
#include "spec/requirements.h"
#include "util/toml_file.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::spec {

/// A package from an index.
struct PinnedPackage {
    std::string name, version;
    std::vector<std::string> checksums; ///< of its files: "sha256:..."
    Marker marker = {};
    std::string where; ///< "file:line"
};

class LockedLines {
public:
    explicit LockedLines(std::filesystem::path lock) : lock_(std::move(lock)) {}

    Status add(const PinnedPackage& package);

    /// Adds a package from an address, a repository or a path. It must have a name.
    Status add(const LockedRequirement& package, const Marker& marker, const std::string& where);

    /// Adds an index from which packages come. PyPI is what the user's configuration says.
    Status add_index(const std::string& url, const std::string& where);

    /// Adds a directory with files of packages, relative to the lock.
    Status add_directory(const std::string& path, const std::string& where);

    /// Fails with an input error if there is no package.
    Result<ConvertedFile> finish();

private:
    Status add_line(const std::string& requirement, const Marker& marker, const std::string& options,
                    const std::string& name, const std::string& where);

    std::filesystem::path lock_;
    std::map<std::string, std::string> options_; ///< with their places
    ConvertedFile converted_;
    std::set<std::string> always_; ///< names of packages whose line has no marker
};

/// The start of a requirement, quoted for a message, without logins.
std::string shown_requirement(std::string_view text);

/// Fails with an input error if pip would read something else from this text than the file means: options,
/// variables, comments, further lines.
Status check_requirement_text(std::string_view text, const std::string& where);

/// The location of a LockedRequirement for a commit of a git repository. The address may also be one that git
/// passes to ssh, "git@github.com:owner/name.git".
std::string git_location(std::string_view address, std::string_view commit, std::string_view directory);

/// The machine that programs see, "x86_64", by the platform's name in conda, "linux-64".
std::string machine_of(std::string_view subdir);

/// The facts about the environment that `choice` is for.
MarkerFacts facts_for(const LockChoice& choice);

/// parse_marker() for a marker at `where`.
Result<Marker> marker_at(std::string_view text, const MarkerFacts& facts, const std::string& where);
/// The same for the key `marker`.
Result<Marker> marker_of(const TomlFile& toml, const toml::table& entry, const MarkerFacts& facts);

/// Fails with an input error if one of the `chosen` parts is not among those that the file `has`. `option` is
/// "--group" or "--extra".
Status check_parts(const std::vector<std::string>& chosen, const std::vector<std::string>& has,
                   std::string_view option, const std::filesystem::path& file);

/// Reads the versions of Python for which a file is, and checks that they can be understood.
Result<Located> python_versions(std::string_view text, const std::string& where);
/// The same for the key `requires-python`.
Result<Located> python_versions(const TomlFile& toml, const toml::table& entry);

// Readers of the files of Python's own tools (ConvertedReader).
Result<ConvertedFile> read_pylock(const std::filesystem::path& file, const LockChoice& choice);
Result<ConvertedFile> read_uv_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<ConvertedFile> read_poetry_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<ConvertedFile> read_pipfile_lock(const std::filesystem::path& file, const LockChoice& choice);
Result<ConvertedFile> read_pyproject(const std::filesystem::path& file, const LockChoice& choice);
Result<ConvertedFile> read_script(const std::filesystem::path& file, const LockChoice& choice);

} // namespace containerize::spec
