// Which packages a Python environment has, read from its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

/// Where a distribution came from that no index gave: what direct_url.json says.
struct Origin {
    std::string url;
    std::string vcs, commit; ///< of a repository: "git"
    std::string subdirectory;
    std::string sha256; ///< of an archive, where it is known
    bool directory = false, editable = false;
};

struct Distribution {
    std::string name, version;
    std::string
        metadata; ///< the file that says so, relative to `site_packages`: "six-1.16.0.dist-info/METADATA"
    bool requested = false; ///< the user asked for it; nothing else needs it to be there
    std::optional<Origin> origin;
};

/// By name, without regard to case. What says nothing of itself is left out.
std::vector<Distribution> read_distributions(const std::filesystem::path& site_packages);

/// As packages are compared: "Charset_Normalizer" and "charset-normalizer" are one name.
std::string normalised_name(std::string_view name);

/// As versions are compared (PEP 440): "v1.0.0" and "1" are one, "2.0rc1" and "2-RC.1", too.
std::string normalised_version(std::string_view version);

} // namespace containerize::pip
