// What the installation of a wheel adds to the files that it contains: pure functions, with the effect of
// `pip install --no-compile`.
#pragma once

#include "wheel/dist_info.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::wheel {

/// The directories of the schemes, relative to the prefix.
struct Layout {
    std::string site_packages, scripts, data, headers;
};
/// That of a venv with this version of Python ("3.11"), for a distribution.
Layout venv_layout(std::string_view python, std::string_view distribution);
/// The same for a Python that is itself installed in the prefix, as in a conda environment.
Layout prefix_layout(std::string_view python, std::string_view distribution);
/// The path relative to the prefix.
std::string path_in_prefix(const Layout& layout, const Place& place);

struct PackagedFile {
    Place place;
    bool executable = false;
    /// The content of a file in scripts/ for which wants_interpreter(); nothing for other files.
    std::optional<std::string> script = {};
};

struct InstallRequest {
    Layout layout;
    std::string interpreter;                    ///< absolute path, for scripts
    std::string python;                         ///< its version: "3.11"
    bool requested = false;                     ///< the user asked for it: not only a dependency
    std::optional<std::string> direct_url = {}; ///< content of direct_url.json, if it came from no index
};

struct GeneratedFile {
    std::string path; ///< relative to the prefix
    std::string content;
    bool executable = false;
};

struct Installation {
    /// Files of the package that are not installed, because generated ones replace them.
    std::set<Place> replaced;
    /// Scripts, and the files that .dist-info gets: INSTALLER, REQUESTED, direct_url.json, RECORD.
    std::vector<GeneratedFile> generated;
};

/// `files` are all files of the package. Fails if .dist-info is malformed.
Result<Installation> plan_installation(const DistInfo& info, const std::vector<PackagedFile>& files,
                                       const InstallRequest& request);

} // namespace containerize::wheel
