// What pip or uv would install, and from which files: they resolve, and do not install.
#pragma once

#include "core/error.h"
#include "pip/distributions.h"
#include "pip/tags.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

struct ResolvedPackage {
    enum class Kind {
        wheel,
        needs_build, ///< a source archive, a repository or a local project
    };

    std::string name, version;   ///< the version is empty if only a build tells it
    std::string url = {};        ///< of the wheel: "https://...", without credentials, or "file:///..."
    std::string sha256 = {};     ///< of the wheel; empty only for what must be built
    std::uint64_t size = 0;      ///< of the wheel; 0 if unknown
    bool requested = false;      ///< named in the requirements: not only a dependency
    std::string direct_url = {}; ///< the text of direct_url.json; empty for packages from an index
    Kind kind = Kind::wheel;
    Origin source = {}; ///< of what must be built

    /// For what must be built: the line from which pip or uv can build it. One from an index is named by its
    /// source archive.
    [[nodiscard]] std::string requirement() const;
};

struct Resolution {
    std::vector<ResolvedPackage> packages =
        {}; ///< sorted by normalised name; without those installed already
    /// Why these packages can only be installed by pip or uv itself, to follow "because"; empty if they can
    /// be fetched and linked.
    std::string obstacle = {};
};

/// Whether there are neither blanks nor control characters. Names, versions and URLs become parts of
/// requirement lines, so a server, or whoever writes a lock, must not be able to add to these.
bool is_one_word(std::string_view text);

/// The decoded name of the file that a URL names.
std::string file_name_in(std::string_view url);

/// SHA-256 checksums of the only files to use, by normalised names of packages.
using Permitted = std::map<std::string, std::set<std::string>>;

/// Reads the output of `pip install --dry-run --report`.
Result<Resolution> read_report(std::string_view text, const Permitted& permitted = {});

/// A package that uv says it would install: " + six==1.16.0", " + six @ https://...", or again: " ~
/// six==1.16.0".
struct Planned {
    std::string name;
    std::string version = {}, url = {}; ///< one of them

    /// The requirement line that means this package and no other.
    [[nodiscard]] std::string pin() const;
};
std::optional<Planned> planned_by_uv(std::string_view line);

struct LockedByUv {
    std::string_view text;                ///< a pylock.toml with at least the planned packages
    std::filesystem::path directory = {}; ///< paths in it are relative to this
    const std::vector<Planned>& planned;
    const TagOrder& tags;                 ///< of the interpreter
    std::set<std::string> requested = {}; ///< normalised names
    Permitted permitted = {};
};
/// Chooses for each package the wheel that uv would.
Result<Resolution> read_lock_of_uv(const LockedByUv& lock);

} // namespace containerize::pip
