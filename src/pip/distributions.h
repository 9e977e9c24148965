// Reads which packages a Python environment contains from its files.
#pragma once

#include "wheel/names.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// The origin of a distribution that did not come from an index, from direct_url.json.
struct Origin {
    std::string url;
    std::string vcs = {}, commit = {}; ///< for a repository: "git"
    std::string subdirectory = {};
    std::string sha256 = {}; ///< for an archive, if known
    bool directory = false, editable = false;

    bool operator==(const Origin&) const = default;
};

struct Distribution {
    std::string name, version;
    std::string metadata;   ///< metadata file, relative to `site_packages`: "six-1.16.0.dist-info/METADATA"
    bool requested = false; ///< the user asked for it: not only a dependency
    std::optional<Origin> origin;
};

/// Reads direct_url.json (PEP 610); nullopt if it is none.
std::optional<Origin> parse_origin(std::string_view text);

/// Sorted by normalised name. Skips distributions without usable metadata.
std::vector<Distribution> read_distributions(const std::filesystem::path& site_packages);

/// The requirement line that installs the distribution again, without checksums from an index.
std::string requirement_line(const Distribution& distribution);

using wheel::normalised_name;

/// The version for comparisons (PEP 440): "v1.0.0" and "1" become the same, and so do "2.0rc1" and "2-RC.1".
std::string normalised_version(std::string_view version);

} // namespace containerize::pip
