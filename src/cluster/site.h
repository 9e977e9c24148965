// What is particular to a site: data, read from templates/sites. A site's own profile is a file of the same
// form.
#pragma once

#include "cluster/ranks.h"
#include "util/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// Which CPUs each task of a node gets.
struct Affinity {
    bool numa = false;                ///< an even share of the CPUs, near each other
    std::vector<std::uint64_t> masks; ///< one for each task, used when there are as many tasks as masks
};

struct Site {
    std::string name, description;
    std::vector<std::pair<std::string, std::string>> detect; ///< variables that all have these values there
    std::vector<std::pair<std::string, std::string>> environment; ///< set where the user has not
    /// Variables that name a directory for what is compiled at run time, and the directory's name.
    std::vector<std::pair<std::string, std::string>> caches;
    Affinity affinity;
    unsigned devices_per_gpu = 1; ///< how many processes for each GPU that Slurm counts
    std::vector<std::string> job; ///< lines of a job script's head
};

/// `where` is for messages. What is not such a profile is an input error.
Result<Site> parse_site(std::string_view text, const std::string& where);

/// Names of those that are built in.
std::vector<std::string> site_names();

/// `wanted` is a name, or a file if it has a '/'; empty for the one whose detect: is true, or "generic".
Result<Site> find_site(const std::string& wanted, const Variables& variables);

} // namespace containerize::cluster
