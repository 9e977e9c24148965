// One package of one channel, as repodata, lock files and conda-meta describe it.
#pragma once

#include "core/error.h"

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
    std::string file_name;       ///< "numpy-1.26.4-py311h64a7726_0.conda"
    std::string subdir;          ///< "linux-64", "noarch"
    std::string channel;         ///< as Channel::url; empty if unknown
    std::string url;             ///< of the archive, without credentials
    std::string download_url;    ///< with credentials, only for downloading; empty if `url` had none
    std::string sha256;          ///< lower-case hex; empty if unknown
    std::string md5;             ///< likewise
    std::uint64_t size = 0;      ///< of the archive in bytes; 0 if unknown
    std::uint64_t timestamp = 0; ///< milliseconds since 1970; 0 if unknown
    Noarch noarch = Noarch::no;
    std::vector<std::string> depends, constrains, track_features;
    std::string features, license, license_family;
    bool of_list = false; ///< from an explicit list or lock, which has little more than the URL
    std::string python_site_packages_path; ///< of Python: where noarch packages go; may be empty

    /// "numpy-1.26.4-py311h64a7726_0", its name in conda-meta.
    [[nodiscard]] std::string distribution() const { return name + "-" + version + "-" + build; }
};

/// Maps a package's name to the specs that requested it, as written.
using Requests = std::map<std::string, std::vector<std::string>>;

/// Whether `text` can be a name, version or build, which become parts of paths and of lines in files.
bool is_plain(std::string_view text);

/// Parses an entry of "packages" in repodata, of a lock file, or info/index.json. Fails if a field is
/// invalid, such as a name that could lead out of a directory. Leaves `channel`, `url` and `file_name` to the
/// caller.
Result<PackageRecord> parse_record(const nlohmann::json& entry);

/// Formats the record as in conda-meta, without unknown fields.
nlohmann::json to_json(const PackageRecord& record);

} // namespace containerize::conda
