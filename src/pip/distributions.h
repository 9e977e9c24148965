// Which packages a Python environment has, read from its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::pip {

struct Distribution {
    std::string name, version;
    std::string
        metadata; ///< the file that says so, relative to `site_packages`: "six-1.16.0.dist-info/METADATA"
    bool requested = false; ///< the user asked for it; nothing else needs it to be there
};

/// By name, without regard to case. What says nothing of itself is left out.
std::vector<Distribution> read_distributions(const std::filesystem::path& site_packages);

/// As packages are compared: "Charset_Normalizer" and "charset-normalizer" are one name.
std::string normalised_name(std::string_view name);

} // namespace containerize::pip
