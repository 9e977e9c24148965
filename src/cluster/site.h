// Site profiles: data about a site, from templates/sites or from a site's own file in this format.
#pragma once

#include "cluster/ranks.h"
#include "core/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// Names of variables with their values.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Which CPUs each task of a node gets.
struct Affinity {
    bool numa = false;                        ///< an equal share of neighbouring CPUs
    std::vector<std::vector<unsigned>> masks; ///< the CPUs of each task; used if there are as many tasks
};

struct Site {
    std::string name, description;
    Settings detect;      ///< variables whose values identify the site
    Settings environment; ///< variables to set unless the user has
    /// Pairs of a variable that names a directory for code compiled at run time, and the directory's name.
    Settings caches;
    Affinity affinity;
    unsigned devices_per_gpu = 1; ///< processes for each GPU that Slurm counts
    std::vector<std::string> job; ///< lines for the head of a job script
};

/// Fails with an input error if `text` is not a valid profile. `where` is for messages.
Result<Site> parse_site(std::string_view text, const std::string& where);

/// The names of the built-in profiles.
std::vector<std::string> site_names();

/// `wanted` is a name, or a file if it contains '/'. If empty, returns the detected profile, or "generic".
Result<Site> find_site(const std::string& wanted, const Environment& variables);

} // namespace containerize::cluster
