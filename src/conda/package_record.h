// One package of one channel: what repodata, lock files and conda-meta say of it.
#pragma once

#include "util/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::conda {

enum class Noarch { no, generic, python };

struct PackageRecord {
    std::string name, version, build;
    std::uint64_t build_number = 0;
    std::string file_name;    ///< "numpy-1.26.4-py311h64a7726_0.conda"
    std::string subdir;       ///< "linux-64", "noarch"
    std::string channel;      ///< the channel's URL without credentials, as Channel::url; empty if not known
    std::string url;          ///< of the archive, without credentials
    std::string download_url; ///< with them, for the download alone; empty where `url` has lost none
    std::string sha256;       ///< lower-case hex; empty if not given
    std::string md5;          ///< likewise
    std::uint64_t size = 0;   ///< of the archive, in bytes; 0 if not given
    std::uint64_t timestamp = 0; ///< milliseconds since 1970; 0 if not given
    Noarch noarch = Noarch::no;
    std::vector<std::string> depends, constrains, track_features;
    std::string features, license, license_family;
    bool of_list = false;                  ///< of a person's list or lock, which says little but where it is
    std::string python_site_packages_path; ///< of a python package: where noarch packages go, if it says so

    /// "numpy-1.26.4-py311h64a7726_0", under which conda-meta keeps it.
    [[nodiscard]] std::string distribution() const { return name + "-" + version + "-" + build; }
};

/// By name of a package: the specs that asked for it, as they were written.
using Requests = std::map<std::string, std::vector<std::string>>;

/// Whether `text` can be a name, version or build: they become parts of paths and of lines in files.
bool is_plain(std::string_view text);

/// One entry of "packages" in repodata, a lock file's, or info/index.json. The error says what is wrong with
/// it; names that could lead out of a directory are refused. `channel`, `url` and `file_name` are the
/// caller's.
Result<PackageRecord> parse_record(const nlohmann::json& entry);

/// As conda writes it into conda-meta, without what is not known.
nlohmann::json to_json(const PackageRecord& record);

} // namespace containerize::conda
